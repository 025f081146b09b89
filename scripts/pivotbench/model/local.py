"""A model that lies on this machine: can it be read at all?"""

from __future__ import annotations

from pathlib import Path

from pivotbench.errors import UserError
from pivotbench.files import read_json


def check_readable(model: Path) -> None:
    """Check a model's file, or its folder with all files and config.json; one that is not there is left.

    It may be on the machines that run the servers. Raises UserError for a config.json that no engine can
    read, OSError that names the file for what this user may not read.
    """
    if model.is_dir():
        for file in sorted(model.iterdir()):
            if file.is_file():
                file.open("rb").close()
        config = model / "config.json"
        if config.is_file():
            _check_config(config)
    elif model.is_file():
        model.open("rb").close()


def _check_config(config: Path) -> None:
    try:
        if isinstance(read_json(config), dict):
            return
        fault = "no JSON object"
    except (ValueError, RecursionError) as error:
        fault = f"not JSON ({error})"
    raise UserError(f"{config}: {fault}: fetch the model's config.json anew")

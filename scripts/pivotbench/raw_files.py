"""Are the raw rows beside a result still those it was computed from?

A stage records the SHA-256 of the Parquet files it writes. One that is gone is no contradiction: they are
large, and results are often copied without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pivotbench.files import sha256_of_file


def altered(folder: Path, recorded: Mapping[str, Any] | None) -> str | None:
    """Return in one line that a raw file in ``folder`` is not the recorded one; None where it is, or is gone.

    ``recorded``: {path, sha256} as throughput.json holds it under requests_file and telemetry_file.
    """
    path = folder / recorded["path"] if recorded else None
    if path is None or recorded is None or not path.is_file() or sha256_of_file(path) == recorded["sha256"]:
        return None
    return (
        f"{path}: not the rows that throughput.json was computed from (another SHA-256): restore the file, "
        "or remove throughput.json to have the cell measured anew"
    )

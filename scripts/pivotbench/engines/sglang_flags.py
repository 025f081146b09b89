"""The flags of an installed SGLang, as its own argument parser declares them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from pivotbench.engines.base import FlagSpec
from pivotbench.errors import UserError

# Importing SGLang imports torch, which takes a while on a cold disk.
_TIMEOUT_SECONDS = 300
_MARK = "pivotbench-flags:"

# Runs in the engine's interpreter, whose libraries may print to stdout first: hence the mark.
_PROGRAM = f"""
import argparse, json
from sglang.srt.server_args import ServerArgs
parser = argparse.ArgumentParser()
ServerArgs.add_cli_args(parser)
print()
print({_MARK!r} + json.dumps([
    dict(options=a.option_strings, nargs=a.nargs, help=str(a.help or ""),
         choices=None if a.choices is None else [str(c) for c in a.choices])
    for a in parser._actions if a.dest != "help"
]))
"""


def ask_flags(python: Path) -> tuple[FlagSpec, ...]:
    """Return SGLang's flags from ``python``'s environment, sorted by name; no GPU is visible to it.

    Raises UserError where the interpreter or SGLang in it does not start.
    """
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    try:
        told = subprocess.run(
            [str(python), "-c", _PROGRAM], capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, env=env
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"{python}: cannot be asked for SGLang's flags ({error}); check `python:`") from error
    for line in told.stdout.splitlines():
        if line.startswith(_MARK):
            actions = json.loads(line.removeprefix(_MARK))
            return tuple(sorted(map(_spec, actions), key=lambda flag: flag.name))
    last = (told.stderr.strip().splitlines() or [f"it ended with status {told.returncode}"])[-1]
    raise UserError(f"{python}: SGLang does not load there ({last}); check `python:` or install sglang")


def _spec(action: dict[str, Any]) -> FlagSpec:
    names = [option.removeprefix("--") for option in action["options"] if option.startswith("--")]
    nargs = action["nargs"]
    return FlagSpec(
        name=names[0],
        aliases=tuple(names[1:]),
        choices=None if action["choices"] is None else tuple(action["choices"]),
        takes_value=nargs != 0,
        many=nargs in ("+", "*") or (isinstance(nargs, int) and nargs > 1),
        help=" ".join(action["help"].split()),
    )

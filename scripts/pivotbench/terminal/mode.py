"""How much a run says, and how its stages pass on how far they are.

``live``: a few lines that are drawn anew at the bottom of a terminal, and one line for each cell that ended;
``lines``: plain lines, for files and pipes; ``outcomes``: what became of each cell, for CI.
The run tells its stages by an environment variable; a stage on another machine says lines.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping
from typing import Literal

Mode = Literal["live", "lines", "outcomes"]

VARIABLE = "PIVOTBENCH_TERMINAL"
# Begins a line that says how far a stage is: it is shown in place, and gone with the next one.
IN_PLACE = "\x1e"


def choose_mode(environ: Mapping[str, str], *, terminal: bool) -> Mode:
    """Return how a run shall speak whose standard error is a ``terminal`` or is not."""
    if environ.get("CI", "").lower() not in ("", "0", "false"):
        return "outcomes"
    able = environ.get("TERM", "dumb") != "dumb" and importlib.util.find_spec("rich") is not None
    return "live" if terminal and able else "lines"


def write_line(text: str) -> None:
    """Write a line to standard error in one piece, so that those of several processes do not mix.

    print() writes the end of the line by itself where Python is told not to buffer.
    """
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def told_mode() -> Mode:
    """Return how the run that started this stage speaks."""
    told = os.environ.get(VARIABLE)
    return told if told in ("live", "outcomes") else "lines"  # type: ignore[return-value]

"""What one command costs: wall time, processor time, memory."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Spent:
    """The cost of a command with all processes it waited for, and its words.

    ``peak_mib``: the largest of its processes, resident.
    """

    wall_seconds: float
    cpu_seconds: float
    peak_mib: float
    text: str


def spent(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Spent:
    """Run ``command`` in ``folder`` to its end; raises RuntimeError with its words where it fails."""
    with tempfile.TemporaryFile("w+") as said:
        begun = time.monotonic()
        process = subprocess.Popen(
            command, cwd=folder, env=dict(environment), stdout=said, stderr=subprocess.STDOUT
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read()
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} exits with {process.returncode}:\n{text}")
    return Spent(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, text)


def together(costs: Iterable[Spent]) -> Spent:
    """Return the cost of commands that run one after the other."""
    all_ = list(costs)
    return Spent(
        sum(cost.wall_seconds for cost in all_),
        sum(cost.cpu_seconds for cost in all_),
        max(cost.peak_mib for cost in all_),
        "\n".join(cost.text for cost in all_),
    )

"""What one command costs: wall time, processor time, memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
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
    """Run ``command`` in ``folder`` to its end; raises RuntimeError with its words where it fails.

    A process of little memory stands between: a process has had, by the kernel's count, what the one that
    started it held, and this one may hold a whole campaign.
    """
    with tempfile.TemporaryFile("w+") as said, tempfile.NamedTemporaryFile("r") as figures:
        between = [sys.executable, __file__, figures.name, *command]
        code = subprocess.run(
            between, cwd=folder, env=dict(environment), stdout=said, stderr=subprocess.STDOUT, check=False
        ).returncode
        said.seek(0)
        text = said.read()
        if code:
            raise RuntimeError(f"{' '.join(command)} exits with {code}:\n{text}")
        return Spent(**json.load(figures), text=text)


def together(costs: Iterable[Spent]) -> Spent:
    """Return the cost of commands that run one after the other."""
    all_ = list(costs)
    return Spent(
        sum(cost.wall_seconds for cost in all_),
        sum(cost.cpu_seconds for cost in all_),
        max(cost.peak_mib for cost in all_),
        "\n".join(cost.text for cost in all_),
    )


def _between(figures: str, *command: str) -> int:
    """Run ``command``, write what it costs to ``figures``, and return its exit status."""
    begun = time.monotonic()
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    cost = {
        "wall_seconds": time.monotonic() - begun,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_mib": usage.ru_maxrss / 1024,
    }
    Path(figures).write_text(json.dumps(cost))
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode


if __name__ == "__main__":
    sys.exit(_between(*sys.argv[1:]))

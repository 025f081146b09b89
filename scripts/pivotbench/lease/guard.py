"""Watches the supervisor, so that a SIGKILL of it leaves somebody to end its server.

It inherits the supervisor's device locks: the devices stay taken until the sweep is done.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from pivotbench.lease.processes import Identity
from pivotbench.lease.sweep import sweep_launch

SCRIPT = Path(__file__).resolve().parents[2] / "guard.py"


def start_guard(folder: Path, supervisor: str, device_locks: Iterable[int]) -> subprocess.Popen[bytes]:
    """Start the guard of a launch; ``device_locks`` are the open locks that it inherits."""
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), str(folder), supervisor],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        pass_fds=list(device_locks),
    )


def guard(folder: Path, supervisor: Identity) -> None:
    """Wait for the supervisor's end; sweep where it ended without having tidied up."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while supervisor.alive():
        time.sleep(0.1)
    if folder.is_dir():
        sweep_launch(folder)

"""Watches the supervisor, so that a SIGKILL of it leaves somebody to end its server.

It inherits the supervisor's device locks: the devices stay taken until the sweep is done.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path

from pivotbench.lease.processes import Identity
from pivotbench.lease.sweep import sweep_launch


def guard(folder: Path, supervisor: Identity) -> None:
    """Wait for the supervisor's end; sweep where it ended without having tidied up."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while supervisor.alive():
        time.sleep(0.1)
    if folder.is_dir():
        sweep_launch(folder)

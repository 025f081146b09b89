"""Who takes part in a run, found by what they are, so that one of them can be killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from pathlib import Path

from pivotbench.lease.locks import DeviceLocks
from pivotbench.lease.processes import Identity

# Who is killed; two names are killed at once. A worker is a child of the server in a session of its own.
TARGETS = (
    "run",
    "stage",
    "supervisor",
    "guard",
    "server",
    "worker",
    "supervisor guard",
    "run supervisor guard",
    "run stage supervisor guard server worker",
)


def parties(locks: Path) -> dict[str, list[Identity]]:
    """Return the supervisors, guards, servers and workers of the runs that lock in this folder."""
    found: dict[str, list[Identity]] = {"supervisor": [], "guard": [], "server": [], "worker": []}
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            words = Path(entry.path, "cmdline").read_bytes()
            name = _party(words, locks) or _launched(words, Path(entry.path, "environ").read_bytes(), locks)
        except OSError:
            continue
        if name and (identity := Identity.of(int(entry.name))):
            found[name].append(identity)
    return found


def _party(words: bytes, locks: Path) -> str | None:
    if str(locks).encode() not in words:
        return None
    return "supervisor" if b"/supervise.py\0" in words else "guard" if b"/guard.py\0" in words else None


def _launched(words: bytes, environment: bytes, locks: Path) -> str | None:
    if f"@{locks}\0".encode() not in environment:
        return None
    return "server" if b"sglang.launch_server" in words else "worker"


def kill(victims: Iterable[Identity]) -> int:
    """Kill each by SIGKILL; return how many were alive."""
    killed = 0
    for victim in victims:
        if victim.alive():
            os.kill(victim.pid, signal.SIGKILL)
            killed += 1
    return killed


def leaks(locks: Path) -> list[str]:
    """Return what is left of the runs that lock in this folder: processes, launch folders, held locks."""
    found = [f"{name} {who}" for name, those in parties(locks).items() for who in those]
    launches = locks / "launches"
    found += [f"launch folder {path.name}" for path in launches.iterdir()] if launches.is_dir() else []
    devices = DeviceLocks(["cpu"], 1, locks)
    found += [] if devices.try_acquire() else ["the device's lock is held"]
    devices.release()
    return found

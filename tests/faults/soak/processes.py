"""Who takes part in a run, found by what they are, so that one of them can be killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from pathlib import Path

from pivotbench.lease.locks import DeviceLocks
from pivotbench.lease.processes import MARKER, Identity

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


def parties(folder: Path) -> dict[str, list[Identity]]:
    """Return who works in this folder but its soak: supervisors, guards, servers, workers and others."""
    found: dict[str, list[Identity]] = {
        name: [] for name in ("supervisor", "guard", "server", "worker", "other")
    }
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            process = Path(entry.path)
            if (process / "cwd").readlink() != folder:
                continue
            name = _party(process)
        except OSError:
            continue
        if identity := Identity.of(int(entry.name)):
            found[name].append(identity)
    return found


def _party(process: Path) -> str:
    words = (process / "cmdline").read_bytes() + (process / "comm").read_bytes().strip()
    if b"supervise.py" in words:
        return "supervisor"
    if b"guard.py" in words:
        return "guard"
    if f"{MARKER}=".encode() in (process / "environ").read_bytes():
        return "server" if b"sglang.launch_server" in words else "worker"
    return "other"


def kill(victims: Iterable[Identity]) -> int:
    """Kill each by SIGKILL; return how many were alive."""
    killed = 0
    for victim in victims:
        if victim.alive():
            os.kill(victim.pid, signal.SIGKILL)
            killed += 1
    return killed


def temporary_folder(folder: Path) -> Path:
    """Return where the runs in a folder keep temporary files: beside it."""
    return folder.with_name(f"{folder.name}-tmp")


def leaks(folder: Path) -> list[str]:
    """Return what is left of the runs in a folder: processes, launch folders, held locks, temporary files.

    The folder that a killed Snakemake leaves among its temporary files is its own.
    """
    found = [f"{name} {who}" for name, those in parties(folder).items() for who in those]
    launches = folder / "locks" / "launches"
    found += [f"launch folder {path.name}" for path in launches.iterdir()] if launches.is_dir() else []
    temporary = temporary_folder(folder)
    left = temporary.iterdir() if temporary.is_dir() else []
    found += [f"temporary {path.name}" for path in left if not path.name.startswith("snakemake")]
    devices = DeviceLocks(["cpu"], 1, folder / "locks")
    found += [] if devices.try_acquire() else ["the device's lock is held"]
    devices.release()
    return found

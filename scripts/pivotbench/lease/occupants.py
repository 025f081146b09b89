"""What stands on a device, told to whoever locks it next.

The holder of a device's lock writes into the lock file what it starts there, and empties it once that is
proven gone. A lock is free as soon as its holder is dead; the device is not while something is left of what
stood there: a server whose whole watch was killed, and it may be another user's, whose environment nobody
else can read; a process that no signal ends; memory that did not come back.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from pivotbench.lease.processes import Identity, named
from pivotbench.machine.gpu import memory_used_mib, processes_on

# What a device may hold beyond its level before a launch: a driver's own bookkeeping varies that much.
MEMORY_SLACK_MIB = 512


@dataclass(frozen=True)
class Occupant:
    """A launch on a device: its processes, and the memory in use there before it (None on CPU)."""

    launch_id: str
    processes: Sequence[str] = ()
    before_mib: int | None = None


def note(lock: int, occupant: Occupant) -> None:
    """Write into a device's lock, held by us, what stands there; raises OSError."""
    clear(lock)
    os.pwrite(lock, json.dumps(asdict(occupant)).encode(), 0)


def clear(lock: int) -> None:
    """Say that nothing stands there any more."""
    os.ftruncate(lock, 0)


def remains(device: str, lock: int) -> str | None:
    """Return in words what is left of a device's last occupant, None where nothing is."""
    occupant = _read(lock)
    if occupant is None:
        return None
    words = [named(p) for p in map(Identity.parse, occupant.processes) if p.alive()]
    if occupant.before_mib is not None:
        more_mib = memory_used_mib([device]).get(device, 0) - occupant.before_mib
        if more_mib > MEMORY_SLACK_MIB:
            words += [f"{more_mib} MiB more in use than before it", *holders([device])]
    return f"launch {occupant.launch_id} left {', '.join(dict.fromkeys(words))}" if words else None


def holders(uuids: Sequence[str]) -> list[str]:
    """Return who uses some GPUs, by name and pid, as far as NVML tells."""
    found = {i for pid in processes_on(uuids) if (i := Identity.of(pid))}
    return [named(process) for process in sorted(found)]


def _read(lock: int) -> Occupant | None:
    try:
        return Occupant(**json.loads(os.pread(lock, os.fstat(lock).st_size, 0)))
    except (ValueError, TypeError):
        return None

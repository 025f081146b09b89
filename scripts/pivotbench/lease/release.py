"""The proof that nothing of a server is left: no process, no open port, no memory on its GPUs."""

from __future__ import annotations

import time

from pivotbench.lease.occupants import MEMORY_SLACK_MIB, holders
from pivotbench.lease.ports import listeners, port_is_closed
from pivotbench.lease.state import Record
from pivotbench.machine.gpu import memory_used_mib

MEMORY_SECONDS = 30.0
PORT_SECONDS = 2.0


def prove_released(record: Record, url: str | None) -> None:
    """Write into ``record`` whether all of the server is gone, its ``processes_left`` being known."""
    before = record.memory.get("before_mib", {})
    after = wait_for_memory(before)
    record.memory["after_mib"] = after
    if not memory_is_back(before, after):
        record.memory["held_by"] = holders(list(before))
    deadline = time.monotonic() + PORT_SECONDS
    while not port_is_closed(url) and time.monotonic() < deadline:
        time.sleep(0.1)
    record.port_closed = port_is_closed(url)
    record.port_held_by = listeners(url) if url and not record.port_closed else []
    record.released = record.port_closed and memory_is_back(before, after) and not record.processes_left


def memory_is_back(before_mib: dict[str, int], after_mib: dict[str, int]) -> bool:
    """Return whether each GPU holds no more than before the launch (plus slack)."""
    return all(after_mib.get(u, 0) <= held + MEMORY_SLACK_MIB for u, held in before_mib.items())


def wait_for_memory(before_mib: dict[str, int]) -> dict[str, int]:
    """Wait until each GPU's memory is back to its level before the launch; return the last reading."""
    if not before_mib:
        return {}
    deadline = time.monotonic() + MEMORY_SECONDS
    while True:
        after = memory_used_mib(list(before_mib))
        if memory_is_back(before_mib, after) or time.monotonic() > deadline:
            return after
        time.sleep(0.2)

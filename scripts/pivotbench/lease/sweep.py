"""Ends what a launch left behind when those who watched over it were killed."""

from __future__ import annotations

import shutil
import socket
import time
from functools import partial
from pathlib import Path

from pivotbench.gpu import memory_used_mib
from pivotbench.lease.locks import lock_folder
from pivotbench.lease.processes import Identity, end, marked, marked_processes
from pivotbench.lease.state import (
    Record,
    launch_folders,
    launches_folder,
    marker_value,
    read_handle,
    read_order,
    write_record,
)
from pivotbench.results import Reason, now

MEMORY_SECONDS = 30.0
MEMORY_SLACK_MIB = 512


def port_is_closed(url: str | None) -> bool:
    """Return whether nothing accepts connections at the server's address any more."""
    if url is None:
        return True
    host, port = url.removeprefix("http://").rstrip("/").rsplit(":", 1)
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex((host, int(port))) != 0


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


def sweep_launch(folder: Path) -> None:
    """End every process of a launch whose supervisor died, record that, and forget the launch."""
    order, handle = read_order(folder), read_handle(folder)
    if order is None:
        shutil.rmtree(folder, ignore_errors=True)
        return
    known = {Identity.parse(p) for p in handle.processes} if handle else set()
    began = time.monotonic()
    ending = end(
        lambda: marked(marker_value(order.launch_id)) | {p for p in known if p.alive()},
        grace_seconds=0,
    )
    closed = port_is_closed(handle.url if handle else None)
    before = handle.before_mib if handle else {}
    after = wait_for_memory(before)
    record_path = Path(order.record)
    if record_path.parent.is_dir() and not record_path.exists():
        ready = handle is not None and handle.state == "ready"
        reason = Reason.of("server_died", "the process that watched over the server was killed")
        write_record(
            record_path,
            Record(
                launch_id=order.launch_id,
                key=order.key,
                why="supervisor_killed",
                became_ready=ready,
                reason={**vars(reason), "evidence": [], "links": []},
                log=order.log,
                ended=now(),
                signals=[{"signal": name, "seconds": s} for name, s in ending.signals],
                teardown_seconds=round(time.monotonic() - began, 3),
                processes_left=[str(p) for p in ending.left],
                port_closed=closed,
                memory={"before_mib": before, "after_mib": after},
                released=closed and not ending.left and memory_is_back(before, after),
            ),
        )
    shutil.rmtree(folder, ignore_errors=True)


def sweep_stale() -> list[str]:
    """Sweep every launch that nobody watches over any more; return their launch ids.

    Called by whoever holds the device locks: a guard that still sweeps holds them too, so what is
    found here has been abandoned by both.
    """
    swept = []
    for folder in launch_folders():
        handle = read_handle(folder)
        if handle and Identity.parse(handle.supervisor).alive():
            continue
        order = read_order(folder)
        if handle is None and order and Identity.parse(order.owner).alive():
            continue  # ordered a moment ago: its supervisor has not yet spoken
        sweep_launch(folder)
        swept.append(folder.name)
    ours = f"@{lock_folder()}"
    strays = {v for v in marked_processes().values() if v.endswith(ours)}
    for value in strays:
        launch_id = value.removesuffix(ours)
        if not (launches_folder() / launch_id).is_dir():
            end(partial(marked, value), grace_seconds=0)
            swept.append(launch_id)
    return sorted(set(swept))

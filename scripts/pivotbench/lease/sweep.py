"""Ends what a launch left behind when those who watched over it were killed."""

from __future__ import annotations

import shutil
import time
from functools import partial
from pathlib import Path

from pivotbench.lease.ending import end_launch, launch_processes
from pivotbench.lease.locks import lock_folder
from pivotbench.lease.processes import Identity, end, marked, marked_processes
from pivotbench.lease.release import prove_released
from pivotbench.lease.state import (
    Record,
    launch_folders,
    launches_folder,
    read_handle,
    read_order,
    unfinished_folders,
    write_record,
)
from pivotbench.redaction import redact_log, secrets_of
from pivotbench.results import Reason, now


def sweep_launch(folder: Path) -> None:
    """End every process of a launch whose supervisor died, record that, and forget the launch."""
    order, handle = read_order(folder), read_handle(folder)
    if order is None:
        shutil.rmtree(folder, ignore_errors=True)
        return
    known = {Identity.parse(p) for p in handle.processes} if handle else set()
    began = time.monotonic()
    ending = end_launch(
        order, lambda: launch_processes(order) | {p for p in known if p.alive()}, grace_seconds=0
    )
    reason = Reason.of("server_died", "the process that watched over the server was killed")
    record = Record(
        launch_id=order.launch_id,
        key=order.key,
        why="supervisor_killed",
        became_ready=handle is not None and handle.state == "ready",
        reason={**vars(reason), "evidence": [], "links": []},
        log=order.log,
        signals=[{"signal": name, "seconds": s} for name, s in ending.signals],
        processes_left=list(ending.left),
        memory={"before_mib": handle.before_mib if handle else {}},
    )
    prove_released(record, handle.url if handle else None)
    record.teardown_seconds = round(time.monotonic() - began, 3)
    record.ended = now()
    path = Path(order.record)
    if path.parent.is_dir() and not path.exists():
        secrets = secrets_of(order.secrets)
        try:
            try:
                redact_log(Path(order.log), secrets)
            finally:
                write_record(path, record, secrets)
        except OSError:
            return  # ended, but the disk takes no record: the folder stays for whoever sweeps next
    shutil.rmtree(folder, ignore_errors=True)


def sweep_stale() -> list[str]:
    """Sweep every launch that nobody watches over any more; return their launch ids."""
    swept = []
    for folder in unfinished_folders():
        shutil.rmtree(folder, ignore_errors=True)
    for folder in launch_folders():
        handle = read_handle(folder)
        if handle and handle.watched():
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

"""Servers in containers under a lease, as the tests here order and end them."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pivotbench.lease.ensure import Server, ensure, final_record, new_launch_id, record_path, stop
from pivotbench.lease.processes import Identity, marked_processes
from pivotbench.lease.state import LaunchOrder, Record, read_handle
from pivotbench.machine.containers import Container

# The time that the design gives whoever ends a container in place of a killed supervisor, with slack.
SECONDS = 20.0
LEASED: list[Server] = []


def order(folder: Path, container: Container, *script: str, **more: Any) -> LaunchOrder:
    """Return the order of a scripted server in a container; ``more`` replaces fields of it."""
    launch_id, logs = new_launch_id(), folder / "logs"
    fields: dict[str, Any] = {
        "launch_id": launch_id,
        "key": "cell",
        "owner": str(Identity.own()),
        "engine": "sglang",
        "python": "python3",
        "model": "scripted/model",
        "flags": {"script": list(script)} if script else {},
        "env": {"STUDY_SAYS": "so"},
        "gpus": 0,
        "log": str(logs / "launch.log"),
        "record": str(record_path(logs, launch_id)),
        "launch_timeout_seconds": 20.0,
        "slot_wait_seconds": 30.0,
        "container": asdict(container),
    }
    return LaunchOrder(**fields | more)


def launched(asked: LaunchOrder) -> Server:
    """Return its ready server."""
    server = ensure(asked, lambda _: None)
    assert isinstance(server, Server), server
    LEASED.append(server)
    return server


def failed(asked: LaunchOrder) -> Record:
    """Return the record of a launch that does not come up."""
    record = ensure(asked, lambda _: None)
    assert isinstance(record, Record), record
    return record


def ended(server: Server, grace_seconds: float | None = None) -> Record:
    """Return what was recorded of a server that was asked to stop."""
    server.release()
    stop(key="cell", grace_seconds=grace_seconds)
    record = final_record(server)
    assert record is not None
    return record


def until(claim: Callable[[], bool]) -> bool:
    """Return whether it comes true in time."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        if claim():
            return True
        time.sleep(0.05)
    return claim()


def ours(folder: Path) -> list[Identity]:
    """Return the processes of launches in a folder that are left."""
    return [p for p, value in marked_processes().items() if str(folder) in value]


def kill(identity: str) -> None:
    """End a process as the kernel does."""
    os.kill(Identity.parse(identity).pid, signal.SIGKILL)


def watchers(folder: Path, server: Server) -> list[str]:
    """Return supervisor and guard of a launch."""
    handle = read_handle(folder / "locks" / "launches" / server.launch_id)
    assert handle is not None
    needle = f"{server.launch_id}\0{handle.supervisor}".encode()
    guards = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):  # it ended meanwhile
            if entry.name.isdigit() and needle in (entry / "cmdline").read_bytes():
                guards.append(Identity.of(int(entry.name)))
    return [handle.supervisor, *(str(guard) for guard in guards if guard)]


def environment_of(pid: int) -> dict[str, str]:
    """Return the variables that a process was started with."""
    entries = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(entry.split("=", 1) for entry in entries if entry)

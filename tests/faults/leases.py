"""Servers under a lease, as the tests of faults order them, and what may be left of them."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import scripted
from pivotbench.lease.ensure import Server, ensure, new_launch_id, record_path
from pivotbench.lease.locks import DeviceLocks
from pivotbench.lease.processes import Identity, marked_processes
from pivotbench.lease.state import LaunchOrder

RELEASE_SECONDS = 10.0


def order(
    folder: Path,
    *script: str,
    key: str = "cell",
    owner: str | None = None,
    gpus: int = 0,
    numa: bool = False,
    **limits: float,
) -> LaunchOrder:
    launch_id = new_launch_id()
    logs = folder / "logs"
    flags = {"script-events": str(folder / "events")}
    return LaunchOrder(
        launch_id=launch_id,
        key=key,
        owner=owner or str(Identity.own()),
        engine="sglang",
        python=str(scripted.PYTHON),
        model="scripted/model",
        flags=flags | ({"script": list(script)} if script else {}),
        env={},
        gpus=gpus,
        numa=numa,
        log=str(logs / "launch.log"),
        record=str(record_path(logs, launch_id)),
        launch_timeout_seconds=limits.get("launch_timeout_seconds", 20.0),
        slot_wait_seconds=limits.get("slot_wait_seconds", 30.0),
    )


def quiet(_: str) -> None:
    pass


LEASED: list[Server] = []


def launched(folder: Path, *script: str, key: str = "cell", owner: str | None = None) -> Server:
    server = ensure(order(folder, *script, key=key, owner=owner), quiet)
    assert isinstance(server, Server), server
    LEASED.append(server)
    return server


def until(claim: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if claim():
            return True
        time.sleep(0.05)
    return claim()


def ours(folder: Path) -> list[Identity]:
    """Server processes started under this folder's locks, those with a cleaned environment included."""
    pids = {event.pid for event in scripted.read_events(folder / "events")}
    marked = [p for p, value in marked_processes().items() if str(folder) in value]
    return marked + [i for pid in pids if (i := Identity.of(pid))]


def device_is_free(folder: Path) -> bool:
    locks = DeviceLocks(["cpu"], 1, folder / "locks")
    free = locks.try_acquire()
    locks.release()
    return free


def all_released(folder: Path) -> bool:
    launches = folder / "locks" / "launches"
    left = any(launches.iterdir()) if launches.is_dir() else False
    return not ours(folder) and device_is_free(folder) and not left


def identity(process: subprocess.Popen[bytes]) -> str:
    found = Identity.of(process.pid)
    assert found is not None
    return str(found)


def guards() -> list[Identity]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if len(words) > 2 and words[1].endswith(b"/guard.py") and (i := Identity.of(int(entry.name))):
                found.append(i)
    return found


def guard_of(handle_supervisor: str) -> list[Identity]:
    return [g for g in guards() if handle_supervisor.encode() in Path(f"/proc/{g.pid}/cmdline").read_bytes()]

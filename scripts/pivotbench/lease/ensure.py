"""The face of the lease for stages: ensure a server, use it, ask for its end."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pivotbench.errors import UserError
from pivotbench.files import write_json
from pivotbench.lease.how_far import how_far
from pivotbench.lease.locks import share, try_lock
from pivotbench.lease.processes import Identity
from pivotbench.lease.state import (
    Handle,
    LaunchOrder,
    Record,
    hidden_folder,
    launch_folders,
    launches_folder,
    live_launches,
    read_handle,
    read_record,
)
from pivotbench.lease.sweep import sweep_launch
from pivotbench.machine.gpu import gpus_of
from pivotbench.redaction import redacted_log_line, secrets_of

SUPERVISE = Path(__file__).resolve().parents[2] / "supervise.py"
POLL_SECONDS = 0.05
# Progress of a launch: said this often where there is news, and this often where there is none.
SAY_SECONDS, STILL_SECONDS = 5.0, 30.0
# A guard ends and records a launch within this time of the supervisor's death; it waits for GPU memory too.
GUARD_SECONDS = 45.0


@dataclass
class Server:
    """A ready server under our lease; it is not stopped for idleness until ``release``."""

    launch_id: str
    url: str
    served_name: str
    relaunched: bool
    facts: dict[str, Any]
    record_path: Path
    _folder: Path
    _lease: int | None

    def alive(self) -> bool:
        """Return whether its supervisor still holds it ready; no request is sent."""
        handle = read_handle(self._folder)
        return handle is not None and handle.state == "ready" and Identity.parse(handle.supervisor).alive()

    def gpus(self) -> list[str]:
        """Return the UUIDs of its GPUs; none on CPU, or once it has ended."""
        handle = read_handle(self._folder)
        return [] if handle is None else gpus_of(handle.devices)

    def pids(self) -> list[int]:
        """Return its processes, as its supervisor last noted them."""
        handle = read_handle(self._folder)
        return [] if handle is None else [Identity.parse(text).pid for text in handle.processes]

    def release(self) -> None:
        """Give the lease back; the server stays until somebody asks for its end."""
        if self._lease is not None:
            os.close(self._lease)
            self._lease = None


def new_launch_id() -> str:
    """Return a fresh launch id: 12 hex digits."""
    return secrets.token_hex(6)


def record_path(logs: Path, launch_id: str) -> Path:
    """Return where a launch's record is kept in its cell's logs folder."""
    return logs.resolve() / f"server-{launch_id}.json"


def ensure(order: LaunchOrder, progress: Callable[[str], None]) -> Server | Record:
    """Return a ready server for ``order``: the live one of the same key and owner, or a new one.

    Returns the launch's Record where it failed. The lease is taken before the supervisor is
    started, so that the server cannot be evicted between its start and its first use.
    """
    for folder, handle in live_launches():
        if (handle.key, handle.owner) == (order.key, order.owner):
            server = _attach(folder, handle, order)
            if server is not None:
                return server
    return _launch(order, progress)


def _attach(folder: Path, handle: Handle, order: LaunchOrder) -> Server | None:
    try:
        lease = try_lock(folder / "lease", shared=True)
    except OSError:
        return None
    if lease is None:
        return None
    current = read_handle(folder)
    if current is None or current.state != "ready" or current.url is None:
        os.close(lease)
        return None
    return Server(
        launch_id=handle.launch_id,
        url=current.url,
        served_name=replace(order, launch_id=handle.launch_id).served_name,
        relaunched=False,
        facts=current.facts,
        record_path=Path(order.record).with_name(f"server-{handle.launch_id}.json"),
        _folder=folder,
        _lease=lease,
    )


def _launch(order: LaunchOrder, progress: Callable[[str], None]) -> Server | Record:
    folder, lease = _place_order(order)
    with (folder / "supervisor.log").open("wb") as log:
        supervisor = subprocess.Popen(
            [sys.executable, str(SUPERVISE), str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    began, said, words = time.monotonic(), time.monotonic(), ""
    while True:
        handle = read_handle(folder)
        if handle and handle.state == "ready" and handle.url:
            return Server(
                launch_id=order.launch_id,
                url=handle.url,
                served_name=order.served_name,
                relaunched=True,
                facts=handle.facts,
                record_path=Path(order.record),
                _folder=folder,
                _lease=lease,
            )
        if supervisor.poll() is not None:
            os.close(lease)
            return _record_of(order, folder, killed=supervisor.returncode < 0)
        quiet_seconds = time.monotonic() - said
        if quiet_seconds > SAY_SECONDS:
            waiting = handle is not None and handle.state == "waiting"
            what = "waiting for a free device" if waiting else f"launching: {how_far(order)}"
            if what != words or quiet_seconds > STILL_SECONDS:
                said, words = time.monotonic(), what
                progress(f"{what} ({said - began:.0f} s)")
        time.sleep(POLL_SECONDS)


def _place_order(order: LaunchOrder) -> tuple[Path, int]:
    """Make the launch's folder, with the order and our lease in it before anybody can see it."""
    root = launches_folder()
    share(root)
    hidden = hidden_folder(order.launch_id)
    hidden.mkdir(mode=0o700)
    try:
        Path(order.record).parent.mkdir(parents=True, exist_ok=True)
        write_json(hidden / "order.json", asdict(order))
        lease = try_lock(hidden / "lease", shared=True)
        assert lease is not None, "nobody else knows of this launch yet"
        return hidden.rename(root / order.launch_id), lease
    except OSError:
        shutil.rmtree(hidden, ignore_errors=True)
        raise


def _record_of(order: LaunchOrder, folder: Path, *, killed: bool) -> Record:
    """Return the record of a launch whose supervisor is dead: its own, its guard's, or one of ours.

    Raises UserError where it ended by itself and could write none.
    """
    record = _wait_for_record(Path(order.record), folder)
    if record is None and killed:
        sweep_launch(folder)
        record = read_record(Path(order.record))
    if record is not None:
        return record
    detail = _last_line(folder / "supervisor.log", order) or "it says nothing"
    shutil.rmtree(folder, ignore_errors=True)
    detail = detail.removeprefix("error: ")
    raise UserError(f"the supervisor of launch {order.launch_id} ended without a record: {detail}")


def _wait_for_record(path: Path, folder: Path) -> Record | None:
    """Wait for a launch's record as long as somebody may write it; None where nobody has."""
    deadline = time.monotonic() + GUARD_SECONDS
    while time.monotonic() < deadline:
        handle, record = read_handle(folder), read_record(path)
        if record is not None:
            return record
        if handle is None or not handle.watched():
            break
        time.sleep(POLL_SECONDS)
    return read_record(path)


def _last_line(path: Path, order: LaunchOrder) -> str:
    try:
        text = path.read_bytes()[-4000:].decode(errors="replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return redacted_log_line(lines[-1], secrets_of(order.secrets))[:1000] if lines else ""


def final_record(server: Server) -> Record | None:
    """Wait for the record of a server that is ending or has died; None where none appears.

    Where supervisor and guard were both killed, what they leave is ended and recorded here.
    """
    record = _wait_for_record(server.record_path, server._folder)
    handle = read_handle(server._folder)
    if record is None and handle is not None and not handle.watched():
        sweep_launch(server._folder)
        record = read_record(server.record_path)
    return record


def stop(
    *,
    key: str | None = None,
    owner: str | None = None,
    grace_seconds: float | None = None,
    timeout_seconds: float = 90.0,
) -> list[str]:
    """Ask for the end of every server of this key and owner (None: of any) and wait for it.

    ``grace_seconds`` between SIGTERM and SIGKILL; None: what the engine is usually given.
    Returns the launch ids asked. A server in use by a stage ends when that stage is done; one whose watch
    was killed is ended here.
    """
    asked: list[tuple[Path, Handle]] = []
    for folder in launch_folders():
        handle = read_handle(folder)
        if handle and key in (None, handle.key) and owner in (None, handle.owner):
            with contextlib.suppress(OSError):
                write_json(folder / "stop", grace_seconds)
                asked.append((folder, handle))
    deadline = time.monotonic() + timeout_seconds
    while time.monotonic() < deadline and any(handle.watched() for _, handle in asked):
        time.sleep(POLL_SECONDS)
    for folder, handle in asked:
        if folder.is_dir() and not handle.watched():
            sweep_launch(folder)
    return [handle.launch_id for _, handle in asked]

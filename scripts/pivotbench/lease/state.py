"""What the parties of a lease write down: the order, the handle of a live server, the last record.

``<locks>/launches/<launch_id>/`` exists as long as somebody watches over the launch:

    order.json    what to start (LaunchOrder), written by the stage
    lease         held shared (flock) by each stage that uses the server
    handle.json   how things stand (Handle), written by the supervisor
    stop          present when the server shall stop as soon as no stage uses it

The Record outlives it, as ``logs/server-<launch_id>.json`` in the cell's folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from pivotbench.files import read_json, write_json
from pivotbench.lease.locks import lock_folder
from pivotbench.lease.processes import Identity
from pivotbench.redaction import redacted

# Between SIGTERM and SIGKILL where the run is over: whoever ended it shall not wait.
HURRIED_GRACE_SECONDS = 3.0

State = Literal["waiting", "starting", "ready", "ended"]


@dataclass(frozen=True)
class LaunchOrder:
    """Everything a supervisor needs to start one server.

    ``container`` is the image ``python`` is in (a Container as JSON); None for this machine's.
    ``key`` names the cell and the fingerprint of the launch: a stage attaches to a live server of
    its own key alone. ``owner`` is the process (a Snakemake run) without which nothing may run on.
    ``numa`` binds it to the NUMA nodes of its GPUs.
    ``secrets`` names variables of the environment whose values the server gets and no file holds.
    """

    launch_id: str
    key: str
    owner: str
    engine: str
    python: str
    model: str
    flags: dict[str, Any]
    env: dict[str, str]
    gpus: int
    log: str
    record: str
    launch_timeout_seconds: float
    slot_wait_seconds: float
    container: dict[str, Any] | None = None
    numa: bool = False
    secrets: list[str] = field(default_factory=list)

    @property
    def served_name(self) -> str:
        """The model name this server must answer to: proof that an answer is its own."""
        return f"pivotbench-{self.launch_id}"


@dataclass
class Handle:
    """A launch as its supervisor sees it; ``processes`` are those of the server.

    ``before_mib`` is the memory in use on each GPU before the launch, by UUID. ``facts`` are known
    once the server is ready: ready_seconds, phases, effective, command, memory, slot. ``guard`` is the
    process that ends the server should the supervisor be killed.
    """

    launch_id: str
    key: str
    owner: str
    supervisor: str
    state: State
    url: str | None = None
    processes: list[str] = field(default_factory=list)
    devices: list[str] = field(default_factory=list)
    before_mib: dict[str, int] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    guard: str | None = None

    def watched(self) -> bool:
        """Return whether somebody still looks after the launch: its supervisor, or after it the guard."""
        watchers = [self.supervisor, *([self.guard] if self.guard else [])]
        return any(Identity.parse(watcher).alive() for watcher in watchers)


@dataclass
class Record:
    """How a launch went and how it ended, kept after the server is gone.

    ``why`` says why it ended (stop, owner_gone, evicted, idle, failed, died, supervisor_killed);
    ``reason`` is a Reason's content where that was a failure. ``released`` is true when no
    process, no port and no memory of the server is left; who still has them is told by name and pid.
    """

    launch_id: str
    key: str
    why: str
    became_ready: bool
    reason: dict[str, Any] | None = None
    exit_code: int | None = None
    ready_seconds: float | None = None
    phases: list[dict[str, Any]] = field(default_factory=list)
    effective: dict[str, Any] = field(default_factory=dict)
    command: dict[str, Any] = field(default_factory=dict)
    devices: list[str] = field(default_factory=list)
    log: str = ""
    started: str = ""
    ended: str = ""
    signals: list[dict[str, Any]] = field(default_factory=list)
    teardown_seconds: float | None = None
    processes_left: list[str] = field(default_factory=list)
    port_closed: bool = True
    port_held_by: list[str] = field(default_factory=list)
    memory: dict[str, Any] = field(default_factory=dict)
    slot: dict[str, Any] = field(default_factory=dict)
    released: bool = True


def marker_value(launch_id: str) -> str:
    """Return what a launch's processes carry in their environment under MARKER.

    The lock folder is part of it: a run never takes another lock folder's servers for its own.
    """
    return f"{launch_id}@{lock_folder()}"


def launches_folder() -> Path:
    """Return the folder that holds one sub-folder for each launch that is watched over."""
    return lock_folder() / "launches"


def read_handle(folder: Path) -> Handle | None:
    """Return a launch's handle, None before it is first written and after the end."""
    try:
        return Handle(**read_json(folder / "handle.json"))
    except (OSError, ValueError, TypeError):
        return None


def write_handle(folder: Path, handle: Handle) -> None:
    """Write a launch's handle; raises OSError where the folder is gone."""
    write_json(folder / "handle.json", asdict(handle))


def read_order(folder: Path) -> LaunchOrder | None:
    """Return a launch's order, None where it cannot be read."""
    try:
        return LaunchOrder(**read_json(folder / "order.json"))
    except (OSError, ValueError, TypeError):
        return None


def read_record(path: Path) -> Record | None:
    """Return the record in ``path``, None where there is none."""
    try:
        return Record(**read_json(path))
    except (OSError, ValueError, TypeError):
        return None


def write_record(path: Path, record: Record, secrets: Sequence[str] = ()) -> None:
    """Write a launch's record for good, without these secrets."""
    write_json(path, redacted(asdict(record), secrets))


def launch_folders() -> list[Path]:
    """Return the folders of all launches we may look after, finished ones of killed runs included."""
    try:
        entries = sorted(launches_folder().iterdir())
        return [f for f in entries if not f.name.startswith(".") and _ours(f)]
    except OSError:
        return []


def hidden_folder(launch_id: str) -> Path:
    """Return where a launch's folder is made ready by this process, before anybody can see it."""
    return launches_folder() / f".{launch_id}@{Identity.own()}"


def unfinished_folders() -> list[Path]:
    """Return the launch folders whose maker was killed before they were ready."""
    try:
        hidden = [f for f in launches_folder().iterdir() if f.name.startswith(".") and _ours(f)]
    except OSError:
        return []
    return [f for f in hidden if not Identity.parse(f.name.partition("@")[2]).alive()]


def _ours(folder: Path) -> bool:
    try:
        return os.getuid() in (0, folder.stat().st_uid)
    except OSError:
        return False


def live_launches() -> Iterator[tuple[Path, Handle]]:
    """Yield each launch folder with its handle, where its supervisor is alive."""
    for folder in launch_folders():
        handle = read_handle(folder)
        if handle and Identity.parse(handle.supervisor).alive():
            yield folder, handle

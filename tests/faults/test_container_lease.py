"""A server in a container is owned, ended and found again as any other."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

import scripted
from pivotbench.lease.ensure import Server, ensure, final_record, new_launch_id, record_path, stop
from pivotbench.lease.processes import Identity, marked_processes
from pivotbench.lease.state import LaunchOrder, Record, read_handle
from pivotbench.lease.sweep import sweep_stale
from pivotbench.machine.containers import Container
from scripted.containers.daemon import Daemon

IMAGE = "example/sglang:new"
SECONDS = 20.0


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemon]:
    scripted.install(tmp_path / "new", "0.5.23")
    monkeypatch.setenv("PIVOTBENCH_LOCKS", str(tmp_path / "locks"))
    monkeypatch.setenv("PIVOTBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    with Daemon({IMAGE: tmp_path / "new"}) as running:
        for name, value in running.environment.items():
            monkeypatch.setenv(name, value)
        yield running
        stop(grace_seconds=0.5)
        sweep_stale()
    assert until(lambda: not ours(tmp_path))


def order(folder: Path, *script: str, container: Container | None = None) -> LaunchOrder:
    launch_id, logs = new_launch_id(), folder / "logs"
    flags = {"script-events": str(folder / "events")} | ({"script": list(script)} if script else {})
    return LaunchOrder(
        launch_id=launch_id,
        key="cell",
        owner=str(Identity.own()),
        engine="sglang",
        python="python3",
        model="scripted/model",
        flags=flags,
        env={"STUDY_SAYS": "so"},
        gpus=0,
        log=str(logs / "launch.log"),
        record=str(record_path(logs, launch_id)),
        launch_timeout_seconds=20.0,
        slot_wait_seconds=30.0,
        container=asdict(container or Container("docker", IMAGE)),
    )


def launched(asked: LaunchOrder) -> Server:
    server = ensure(asked, lambda _: None)
    assert isinstance(server, Server), server
    return server


def ended(server: Server) -> Record:
    server.release()
    stop(key="cell")
    record = final_record(server)
    assert record is not None
    return record


def until(claim: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        if claim():
            return True
        time.sleep(0.05)
    return claim()


def ours(folder: Path) -> list[Identity]:
    return [p for p, value in marked_processes().items() if str(folder) in value]


def kill(identity: str) -> None:
    os.kill(Identity.parse(identity).pid, signal.SIGKILL)


def watchers(folder: Path, server: Server) -> list[str]:
    """Supervisor and guard of a launch."""
    handle = read_handle(folder / "locks" / "launches" / server.launch_id)
    assert handle is not None
    needle = f"{server.launch_id}\0{handle.supervisor}".encode()
    guards = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):  # it ended meanwhile
            if entry.name.isdigit() and needle in (entry / "cmdline").read_bytes():
                guards.append(Identity.of(int(entry.name)))
    return [handle.supervisor, *(str(guard) for guard in guards if guard)]


def test_a_container_is_named_by_its_launch_gets_the_marker_and_ends_by_stop(
    tmp_path: Path, daemon: Daemon
) -> None:
    server = launched(order(tmp_path, "orphans=1"))
    (container,) = daemon.containers.values()
    assert container.name == f"pivotbench-{server.launch_id}"
    environ = Path(f"/proc/{container.process.pid}/environ").read_bytes().split(b"\0")
    assert f"PIVOTBENCH_LAUNCH={server.launch_id}@{tmp_path}/locks".encode() in environ
    assert b"STUDY_SAYS=so" in environ and b"SPT_NOENV=1" in environ
    assert container.process.pid in server.pids()
    command = server.facts["command"]
    assert command["study"][:2] == ["docker", "run"] and "--name" not in command["study"]
    assert f"pivotbench-{server.launch_id}" in command["container"]
    record = ended(server)
    assert [step["signal"] for step in record.signals] == ["docker stop"]
    assert (record.released, record.port_closed, record.processes_left) == (True, True, [])
    assert not daemon.containers and not ours(tmp_path)


def test_a_container_that_does_not_hear_a_stop_is_ended_by_the_daemon(tmp_path: Path, daemon: Daemon) -> None:
    server = launched(order(tmp_path, "ignore-term"))
    server.release()
    stop(key="cell", grace_seconds=1)
    record = final_record(server)
    assert record is not None and record.released and record.exit_code == -9
    assert not daemon.containers


def test_when_its_supervisor_is_killed_the_guard_ends_the_container(tmp_path: Path, daemon: Daemon) -> None:
    server = launched(order(tmp_path))
    kill(watchers(tmp_path, server)[0])
    assert until(lambda: not daemon.containers and not ours(tmp_path))
    record = final_record(server)
    assert record is not None and (record.why, record.released) == ("supervisor_killed", True)


def test_when_supervisor_and_guard_are_killed_the_next_run_finds_and_ends_the_container(
    tmp_path: Path, daemon: Daemon
) -> None:
    server = launched(order(tmp_path))
    supervisor, guard = watchers(tmp_path, server)
    kill(guard)
    kill(supervisor)
    assert until(lambda: not Identity.parse(supervisor).alive())
    assert daemon.containers, "a container outlives its client"
    swept = sweep_stale()
    # Where the supervisor lived long enough to start another guard, that one was first.
    assert server.launch_id in swept or until(lambda: not daemon.containers)
    assert not daemon.containers and not ours(tmp_path)


def test_an_image_that_docker_cannot_start_is_an_engine_that_is_missing(
    tmp_path: Path, daemon: Daemon
) -> None:
    record = ensure(order(tmp_path, container=Container("docker", "no/such")), lambda _: None)
    assert isinstance(record, Record) and record.reason is not None
    assert record.reason["code"] == "engine_missing"
    assert "No such image: no/such" in record.reason["message"]
    assert record.released and not daemon.containers


def test_a_crash_in_a_container_keeps_its_cause_and_its_signal(tmp_path: Path, daemon: Daemon) -> None:
    record = ensure(order(tmp_path, "crash", "crash-log=moe-trtllm.log", "crash-exit=-9"), lambda _: None)
    assert isinstance(record, Record) and record.reason is not None
    assert (record.reason["code"], record.exit_code) == ("artifact_unavailable", -9)
    assert not daemon.containers


def test_apptainers_server_is_a_process_of_ours_with_the_marker(tmp_path: Path, daemon: Daemon) -> None:
    asked = replace(
        order(tmp_path, "orphans=1"), container=asdict(Container("apptainer", str(tmp_path / "new")))
    )
    server = launched(asked)
    assert len(ours(tmp_path)) == 2
    record = ended(server)
    assert record.released and not ours(tmp_path)
    assert record.signals[0]["signal"] == "SIGTERM"
    assert not daemon.asked

"""A server in a container is owned, ended and found again as any other."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread

from containers.conftest import IMAGE, Runtime
from containers.leases import (
    ended,
    environment_of,
    failed,
    kill,
    launched,
    order,
    ours,
    until,
    watchers,
)
from pivotbench.lease.ensure import final_record
from pivotbench.lease.processes import Identity
from pivotbench.lease.sweep import sweep_stale
from pivotbench.machine.containers import Container
from scripted.containers.daemon import Daemon


def test_a_container_is_named_by_its_launch_gets_the_marker_and_ends_by_stop(
    folder: Path, runtime: Runtime
) -> None:
    server = launched(order(folder, runtime.container, "orphans=1"))
    [(name, first)] = runtime.running().items()
    assert name == f"pivotbench-{server.launch_id}"
    environment = environment_of(first)
    assert environment["PIVOTBENCH_LAUNCH"] == f"{server.launch_id}@{folder}/locks"
    assert environment["STUDY_SAYS"] == "so" and environment["SPT_NOENV"] == "1"
    assert first in server.pids() and {process.pid for process in ours(folder)} <= set(server.pids())
    command = server.facts["command"]
    assert command["study"][:2] == ["docker", "run"] and "--name" not in command["study"]
    assert f"pivotbench-{server.launch_id}" in command["container"]
    record = ended(server)
    assert [step["signal"] for step in record.signals] == ["docker stop"]
    assert (record.released, record.port_closed, record.processes_left) == (True, True, [])
    assert record.exit_code == 0, "the server's own: it heard SIGTERM"
    assert not runtime.running() and not ours(folder)


def test_a_container_that_does_not_hear_a_stop_is_ended_by_the_daemon(folder: Path, runtime: Runtime) -> None:
    record = ended(launched(order(folder, runtime.container, "ignore-term")), grace_seconds=1)
    assert record.released and record.exit_code == -9
    assert not runtime.running()


def test_when_its_supervisor_is_killed_the_guard_ends_the_container(folder: Path, runtime: Runtime) -> None:
    server = launched(order(folder, runtime.container))
    kill(watchers(folder, server)[0])
    assert until(lambda: not runtime.running() and not ours(folder))
    assert until(lambda: final_record(server) is not None)
    record = final_record(server)
    assert record is not None and (record.why, record.released) == ("supervisor_killed", True)


def test_when_supervisor_and_guard_are_killed_the_next_run_finds_and_ends_the_container(
    folder: Path, runtime: Runtime
) -> None:
    server = launched(order(folder, runtime.container))
    supervisor, guard = watchers(folder, server)
    kill(guard)
    kill(supervisor)
    assert until(lambda: not Identity.parse(supervisor).alive())
    assert runtime.running(), "a container outlives its client"
    swept = sweep_stale()
    # Where the supervisor lived long enough to start another guard, that one was first.
    assert server.launch_id in swept or until(lambda: not runtime.running())
    assert not runtime.running() and not ours(folder)


def test_an_image_that_docker_cannot_start_is_an_engine_that_is_missing(
    folder: Path, runtime: Runtime
) -> None:
    record = failed(order(folder, Container("docker", "no/such")))
    assert record.reason is not None and record.reason["code"] == "engine_missing"
    assert "No such image: no/such" in record.reason["message"]
    assert record.released and not runtime.running()


def test_a_crash_in_a_container_keeps_its_cause_and_its_signal(folder: Path, runtime: Runtime) -> None:
    record = failed(order(folder, runtime.container, "crash", "crash-log=moe-trtllm.log", "crash-exit=-9"))
    assert record.reason is not None
    assert (record.reason["code"], record.exit_code) == ("artifact_unavailable", -9)
    assert not runtime.running()


def test_an_exit_code_that_docker_has_too_is_the_servers_where_it_came_to_run(
    folder: Path, runtime: Runtime
) -> None:
    record = failed(order(folder, runtime.container, "crash", "crash-exit=127"))
    assert record.exit_code == 127
    assert record.reason is not None and record.reason["code"] != "engine_missing"


def test_a_server_that_dies_while_it_serves_is_told_by_its_own_exit_code(
    folder: Path, runtime: Runtime
) -> None:
    server = launched(order(folder, runtime.container, "crash-after=0.3", "crash-exit=255"))
    assert until(lambda: not server.alive())
    record = ended(server)
    assert (record.why, record.exit_code, record.released) == ("died", 255, True)
    assert not runtime.running() and not ours(folder)


def test_a_slow_client_still_says_how_its_server_ended(folder: Path, runtime: Runtime) -> None:
    server = launched(order(folder, runtime.container))
    [first] = runtime.running().values()
    words = {p.pid: Path(f"/proc/{p.pid}/cmdline").read_bytes().split(b"\0") for p in ours(folder)}
    [client] = [pid for pid, command in words.items() if b"run" in command[:4]]
    os.kill(client, signal.SIGSTOP)
    Thread(target=_wake_after, args=(client, lambda: Identity.of(first) is None)).start()
    record = ended(server)
    assert (record.exit_code, record.released) == (0, True)


def _wake_after(pid: int, claim: Callable[[], bool]) -> None:
    until(claim)
    time.sleep(0.7)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


def test_when_its_run_is_gone_so_is_the_container(folder: Path, runtime: Runtime) -> None:
    run = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(120)"])
    server = launched(order(folder, runtime.container, "orphans=2", owner=str(Identity.of(run.pid))))
    server.release()
    run.kill()
    run.wait()
    assert until(lambda: not runtime.running() and not ours(folder))


def test_apptainers_server_is_a_process_of_ours_with_the_marker(folder: Path, stand_in: Daemon) -> None:
    server = launched(order(folder, Container("apptainer", str(stand_in.images[IMAGE])), "orphans=1"))
    assert len(ours(folder)) == 2
    record = ended(server)
    assert record.released and not ours(folder)
    assert record.signals[0]["signal"] == "SIGTERM"
    assert not stand_in.asked

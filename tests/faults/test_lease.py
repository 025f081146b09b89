"""A server never outlives those who asked for it, however they die."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from itertools import pairwise
from pathlib import Path

import pytest

import scripted
from faults.leases import (
    LEASED,
    RELEASE_SECONDS,
    all_released,
    device_is_free,
    guard_of,
    identity,
    launched,
    order,
    ours,
    quiet,
    until,
)
from pivotbench.lease.ensure import Server, ensure, final_record, stop
from pivotbench.lease.processes import Identity
from pivotbench.lease.state import Record, hidden_folder, live_launches, read_handle, read_record
from pivotbench.lease.sweep import sweep_stale


def test_a_live_server_is_attached_to_and_not_started_twice(folder: Path) -> None:
    first = launched(folder)
    second = launched(folder)
    assert (first.launch_id, first.relaunched) == (second.launch_id, True)
    assert not second.relaunched
    assert scripted.launches(folder / "events") == 1


def test_stopping_proves_that_nothing_is_left(folder: Path) -> None:
    server = launched(folder, "orphans=2")
    server.release()
    stop(key="cell")
    record = final_record(server)
    assert record is not None
    assert (record.why, record.released, record.port_closed) == ("stop", True, True)
    assert all_released(folder)


def test_a_long_launch_tells_what_is_done_how_long_it_took_and_what_it_is_at(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pivotbench.lease.ensure.SAY_SECONDS", 0.1)
    said: list[str] = []
    server = ensure(order(folder, "start=3"), said.append)
    assert isinstance(server, Server)
    LEASED.append(server)
    loading = [text for text in said if "Load weight begin" in text]
    assert loading and all(re.match(r"launching: imports \d+ s, distributed \d+ s \| ", t) for t in loading)
    words = [text.rpartition(" (")[0] for text in said]
    assert all(one != other for one, other in pairwise(words)), "said again without news"


@pytest.mark.alone
def test_a_crash_at_launch_is_noticed_within_two_seconds_of_the_death(folder: Path) -> None:
    outcome = ensure(order(folder, "crash", "crash-log=moe-trtllm.log"), quiet)
    noticed = time.time()
    assert isinstance(outcome, Record)
    assert outcome.reason is not None
    assert outcome.reason["code"] == "artifact_unavailable"
    died = max(event.seconds for event in scripted.read_events(folder / "events"))
    assert noticed - died < 2.0


def test_a_server_that_never_answers_fails_at_its_time_limit(folder: Path) -> None:
    outcome = ensure(order(folder, "hang-launch", launch_timeout_seconds=1.5), quiet)
    assert isinstance(outcome, Record)
    assert outcome.reason is not None
    assert (outcome.reason["code"], outcome.reason["kind"]) == ("launch_timeout", "transient")
    assert until(lambda: all_released(folder), RELEASE_SECONDS)


def test_a_server_that_answers_for_another_model_is_not_measured(folder: Path) -> None:
    outcome = ensure(order(folder, "stranger=somebody-else"), quiet)
    assert isinstance(outcome, Record)
    assert outcome.reason is not None
    assert outcome.reason["code"] == "port_in_use"


def test_a_server_that_ignores_sigterm_is_killed(folder: Path) -> None:
    server = launched(folder, "ignore-term")
    server.release()
    stop(key="cell", grace_seconds=0.5)
    record = final_record(server)
    assert record is not None
    assert [s["signal"] for s in record.signals] == ["SIGTERM", "SIGKILL"]
    assert record.released


def test_a_port_that_stays_open_is_a_leak(folder: Path) -> None:
    with scripted.PortHolder() as holder:
        server = launched(folder, f"keep-port={holder.path}")
        server.release()
        stop(key="cell")
        record = final_record(server)
        assert record is not None
        assert (record.released, record.port_closed, record.processes_left) == (False, False, [])


def test_the_death_of_the_owner_ends_the_server(folder: Path, other_owner: subprocess.Popen[bytes]) -> None:
    launched(folder, "orphans=2", "orphan-clean-env", "ignore-term", owner=identity(other_owner))
    other_owner.kill()
    other_owner.wait()
    assert until(lambda: all_released(folder), RELEASE_SECONDS)


def test_a_killed_supervisor_is_swept_up_after_by_its_guard(folder: Path) -> None:
    server = launched(folder, "orphans=2", "orphan-clean-env")
    [(_, handle)] = list(live_launches())
    time.sleep(2.5)  # the supervisor looks for new processes every two seconds
    os.kill(Identity.parse(handle.supervisor).pid, signal.SIGKILL)
    assert until(lambda: all_released(folder), RELEASE_SECONDS)
    record = final_record(server)
    assert record is not None
    assert (record.why, record.released) == ("supervisor_killed", True)


def test_a_killed_guard_is_replaced(folder: Path) -> None:
    launched(folder)
    [(_, handle)] = list(live_launches())
    [guard] = guard_of(handle.supervisor)
    os.kill(guard.pid, signal.SIGKILL)
    assert until(lambda: [g for g in guard_of(handle.supervisor) if g != guard] != [], 5.0)
    os.kill(Identity.parse(handle.supervisor).pid, signal.SIGKILL)
    assert until(lambda: all_released(folder), RELEASE_SECONDS)


def test_what_supervisor_and_guard_leave_behind_is_swept_by_the_next_launch(folder: Path) -> None:
    launched(folder, "orphans=1", "ignore-term").release()
    [(path, handle)] = list(live_launches())
    [guard] = guard_of(handle.supervisor)
    for pid in (guard.pid, Identity.parse(handle.supervisor).pid):
        os.kill(pid, signal.SIGKILL)
    assert until(lambda: device_is_free(folder), RELEASE_SECONDS)
    assert ours(folder), "the orphan outlives both: that is what the next launch has to sweep"
    before = set(ours(folder))
    second = launched(folder, key="another cell")
    assert not before & set(ours(folder))
    assert read_handle(path) is None
    second.release()


def test_two_owners_never_have_servers_at_the_same_time(
    folder: Path, other_owner: subprocess.Popen[bytes]
) -> None:
    first = launched(folder)
    first.release()
    second = launched(folder, owner=identity(other_owner))  # waits until the idle first one is evicted
    record = final_record(first)
    assert record is not None
    assert record.why == "evicted"
    assert scripted.overlaps(folder / "events") == []
    second.release()


def test_a_server_in_use_is_not_evicted(folder: Path, other_owner: subprocess.Popen[bytes]) -> None:
    first = launched(folder)
    outcome = ensure(order(folder, owner=identity(other_owner), slot_wait_seconds=1.0), quiet)
    assert isinstance(outcome, Record)
    assert outcome.reason is not None
    assert (outcome.reason["code"], outcome.reason["kind"]) == ("slot_refused", "transient")
    assert first.alive()


def test_a_server_that_dies_in_use_is_told_from_one_that_was_stopped(folder: Path) -> None:
    server = launched(folder, "crash-after=0.5", "crash-log=moe-trtllm.log")
    assert until(lambda: not server.alive(), 10.0)
    record = final_record(server)
    assert record is not None
    assert record.reason is not None
    assert (record.why, record.reason["code"]) == ("died", "server_died")


def killed_watch(server: Server) -> None:
    """Kill a server's guard and supervisor at once."""
    [handle] = [handle for _, handle in live_launches() if handle.launch_id == server.launch_id]
    assert handle.guard is not None
    for watcher in (handle.guard, handle.supervisor):
        os.kill(Identity.parse(watcher).pid, signal.SIGKILL)
    assert until(lambda: not handle.watched(), RELEASE_SECONDS)


def test_a_stage_whose_servers_whole_watch_was_killed_ends_and_records_it_without_waiting(
    folder: Path,
) -> None:
    server = launched(folder, "orphans=1")
    killed_watch(server)
    record = final_record(server)
    assert record is not None
    assert (record.why, record.released) == ("supervisor_killed", True)
    assert all_released(folder)


def test_a_stop_ends_a_server_whose_whole_watch_was_killed(folder: Path) -> None:
    server = launched(folder, "orphans=1")
    server.release()
    killed_watch(server)
    assert stop(key="cell") == [server.launch_id]
    assert all_released(folder)
    record = final_record(server)
    assert record is not None and record.released


def test_a_supervisor_killed_before_it_spoke_is_a_result(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dies = folder / "dies.py"
    dies.write_text("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    monkeypatch.setattr("pivotbench.lease.ensure.SUPERVISE", dies)
    outcome = ensure(order(folder), quiet)
    assert isinstance(outcome, Record) and outcome.reason is not None
    assert (outcome.reason["code"], outcome.reason["kind"]) == ("server_died", "transient")
    assert not any((folder / "locks" / "launches").iterdir())


@pytest.mark.usefixtures("folder")
def test_a_launch_folder_whose_maker_was_killed_half_way_is_forgotten(
    other_owner: subprocess.Popen[bytes],
) -> None:
    made = hidden_folder("0123456789ab")
    made.mkdir(parents=True)
    theirs = made.with_name(f".aaaaaaaaaaaa@{identity(other_owner)}")
    theirs.mkdir()
    gone = made.with_name(".bbbbbbbbbbbb@1:1")
    gone.mkdir()
    sweep_stale()
    assert (made.is_dir(), theirs.is_dir(), gone.is_dir()) == (True, True, False)


def test_a_port_stolen_between_choice_and_bind_is_a_reason_that_may_not_happen_again(folder: Path) -> None:
    outcome = ensure(order(folder, "port-stolen"), quiet)
    assert isinstance(outcome, Record) and outcome.reason is not None
    assert (outcome.reason["code"], outcome.reason["kind"]) == ("port_in_use", "transient")
    assert all_released(folder)


def test_a_stop_waits_for_the_record_of_a_server_whose_run_was_killed_a_moment_ago(
    folder: Path, other_owner: subprocess.Popen[bytes]
) -> None:
    server = launched(folder, owner=identity(other_owner))
    server.release()
    other_owner.kill()
    other_owner.wait()
    stop(key="cell")
    assert read_record(server.record_path) is not None

"""Whatever ends a run, nothing of it is left within ten seconds, and the next run just goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pivotbench.lease.locks import DeviceLocks
from pivotbench.lease.processes import Identity, marked_processes
from workflow.campaign import Folder

RELEASE_SECONDS = 10.0
# Whatever is killed while a load runs is killed long before it would have ended, on a busy machine too.
LONG_SECONDS = 60.0
CELL = "results/small/backends/good/r1/teardown.json"


def until(claim: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if claim():
            return True
        time.sleep(0.05)
    return claim()


def released(folder: Folder) -> bool:
    if any(str(folder.path) in value for value in marked_processes().values()):
        return False
    locks = DeviceLocks(["cpu"], 1, folder.path / "locks")
    free = locks.try_acquire()
    locks.release()
    return free and not any((folder.path / "locks" / "launches").iterdir())


def one_backend(folder: Folder, *script: str) -> None:
    """Reduce the study to one backend in one round, with servers that are hard to end."""
    study = folder.study()
    study["backends"] = {"good": {"attention-backend": "fa3", **({"script": list(script)} if script else {})}}
    del study["speculative"]
    study["decision"]["rounds"] = {"min": 1, "max": 1}
    study["throughput"]["seconds"] = LONG_SECONDS
    folder.write(study)


def in_short(folder: Folder) -> None:
    """Have the study's throughput take moments from now on."""
    study = folder.study()
    study["throughput"]["seconds"] = 0.5
    folder.write(study)


def stage_process(folder: Folder, stage: str) -> Identity | None:
    """The process of a running stage of this folder's campaign."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            here = (entry / "cwd").readlink() == folder.path
        except OSError:
            continue
        if here and len(words) > 1 and words[1].endswith(f"/scripts/{stage}.py".encode()):
            return Identity.of(int(entry.name))
    return None


def running_throughput(folder: Folder) -> subprocess.Popen[str]:
    run, log = folder.start(CELL), folder.path / "run.log"
    assert until(lambda: "throughput: text at concurrency 1: warming up" in log.read_text(), 60), (
        log.read_text()
    )
    return run


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda n: n.name)
def test_a_run_ended_in_the_middle_leaves_nothing_and_the_next_one_goes_on(
    fresh: Folder, number: signal.Signals
) -> None:
    one_backend(fresh, "orphans=2", "ignore-term")
    run = running_throughput(fresh)
    os.kill(run.pid, number)
    assert until(lambda: released(fresh), RELEASE_SECONDS)
    run.wait(timeout=60)
    assert not (fresh.cell("good") / "throughput.json").exists()
    in_short(fresh)
    again = fresh.snakemake(CELL)
    assert again.code == 0, again.text
    assert again.jobs["throughput"] == again.jobs["teardown"] == 1
    assert again.jobs["launch"] == again.jobs["smoke"] == 0
    assert json.loads((fresh.cell("good") / "throughput.json").read_text())["status"] == "ok"


def test_a_killed_supervisor_costs_one_cell_and_not_the_run(fresh: Folder) -> None:
    one_backend(fresh)
    run = running_throughput(fresh)
    [handle] = [json.loads(p.read_text()) for p in (fresh.path / "locks" / "launches").glob("*/handle.json")]
    os.kill(Identity.parse(handle["supervisor"]).pid, signal.SIGKILL)
    assert run.wait(timeout=120) == 0, (fresh.path / "run.log").read_text()
    throughput = json.loads((fresh.cell("good") / "throughput.json").read_text())
    assert (throughput["status"], throughput["reason"]["code"]) == ("failed", "server_died")
    assert released(fresh)
    in_short(fresh)
    assert fresh.snakemake(CELL).code == 0
    assert json.loads((fresh.cell("good") / "throughput.json").read_text())["status"] == "ok"


def test_a_killed_server_is_a_result(fresh: Folder) -> None:
    one_backend(fresh)
    run = running_throughput(fresh)
    [server] = [p for p, value in marked_processes().items() if str(fresh.path) in value]
    os.kill(server.pid, signal.SIGKILL)
    assert run.wait(timeout=120) == 0
    throughput = json.loads((fresh.cell("good") / "throughput.json").read_text())
    assert throughput["reason"]["code"] == "server_died"


def test_a_stage_that_raises_ends_the_run_and_leaves_no_server(fresh: Folder) -> None:
    one_backend(fresh)
    in_the_way = fresh.cell("good") / "requests.parquet"
    (in_the_way / "somebody's file").mkdir(parents=True)
    run = fresh.snakemake(CELL)
    assert run.code != 0
    assert run.jobs["smoke"] == 1, "the server was up when throughput raised"
    assert released(fresh)
    assert not (fresh.cell("good") / "throughput.json").exists()


def test_a_killed_stage_leaves_no_file_and_the_next_run_resumes(fresh: Folder) -> None:
    one_backend(fresh)
    run = running_throughput(fresh)
    stage = stage_process(fresh, "throughput")
    assert stage is not None
    os.kill(stage.pid, signal.SIGKILL)
    assert run.wait(timeout=120) != 0
    assert not (fresh.cell("good") / "throughput.json").exists()
    assert until(lambda: released(fresh), RELEASE_SECONDS)
    in_short(fresh)
    again = fresh.snakemake(CELL)
    assert again.code == 0, again.text
    assert again.jobs["launch"] == 0
    assert again.jobs["throughput"] == 1

"""One run of one cell without Snakemake: the stages that are due, in order, each in a process of its own.

The processes are forked from one that has the library loaded already: what is soaked is the lease and the
stages, not Python's start. Servers are started as ever, supervisors and guards where a run says so.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# A stage loads these when it needs them; each fork would do so again.
import pandas  # noqa: F401
import pyarrow.compute
import pyarrow.parquet  # noqa: F401
import pynvml  # noqa: F401

from faults.soak.forks import fork_the_watch
from pivotbench.campaign import Campaign
from pivotbench.cells import Cell, launch_request, smoke_request, stage_fingerprint, throughput_request
from pivotbench.lease.ensure import stop
from pivotbench.lease.processes import Identity
from pivotbench.lease.state import HURRIED_GRACE_SECONDS
from pivotbench.lease.sweep import sweep_stale
from pivotbench.results import STAGES, Stage
from pivotbench.stages.context import OWNER_VARIABLE, Context, run_stage
from pivotbench.stages.launch import launch
from pivotbench.stages.smoke import smoke
from pivotbench.stages.teardown import teardown
from pivotbench.stages.throughput import throughput
from pivotbench.staleness import Judge
from pivotbench.study import Study

BODIES: dict[Stage, Callable[[Context], None]] = {
    "launch": launch,
    "smoke": smoke,
    "throughput": throughput,
    "teardown": teardown,
}


def due(study: Study, cell: Cell, folder: Path = Path()) -> list[Stage]:
    """Return the stages that a run in ``folder`` has to make, by the rules that Snakemake is told."""
    judge, asked = Judge(None, gpus=0), (smoke_request(study), throughput_request(study))
    for place, stage in enumerate(STAGES):
        wanted = stage_fingerprint(stage, launch_request(study, cell), *asked)
        path = folder / cell.file(stage)
        again = judge.worth_retrying(folder / cell.file("teardown")) if stage == "launch" else None
        if not path.exists() or judge.stale(path, wanted) or again:
            return list(STAGES[place:])
        made = path.stat().st_mtime_ns
        if any((folder / cell.file(before)).stat().st_mtime_ns > made for before in STAGES[:place]):
            return list(STAGES[place:])
    return []


@dataclass
class CellRun:
    """A run that was started: it tells what it is at, and may be killed."""

    process: Identity
    _told: int
    stage: tuple[Stage, Identity] | None = None
    code: int | None = None

    def listen(self, seconds: float) -> bool:
        """Hear for at most so long what the run is at; return whether it goes on."""
        if self.code is None and select.select([self._told], [], [], max(0.0, seconds))[0]:
            words = os.read(self._told, 4096).decode().split()
            if not words:
                self._end()
            elif words[-2] in STAGES:
                self.stage = words[-2], Identity.parse(words[-1])
        return self.code is None

    def wait(self) -> int:
        """Wait for the run's end; return its exit code, negative where it was killed."""
        while self.listen(60.0):
            pass
        assert self.code is not None
        return self.code

    def _end(self) -> None:
        os.close(self._told)
        self.code = os.waitstatus_to_exitcode(os.waitpid(self.process.pid, 0)[1])


def start(campaign: Campaign, cell: Cell, log: Path, *, forked: bool) -> CellRun:
    """Start a run of the stages that are due; it exits 0 where each of them left its file.

    ``forked``: supervisors and guards are forks, too.
    """
    reader, writer = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        code = 70
        try:
            if forked:
                fork_the_watch()
            code = _run(campaign, cell, log, writer)
        finally:
            os._exit(code)
    os.close(writer)
    process = Identity.of(pid)
    return CellRun(process or Identity(pid, 0), reader)


def _run(campaign: Campaign, cell: Cell, log: Path, told: int) -> int:
    os.environ[OWNER_VARIABLE] = str(Identity.own())
    stream = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(stream, 1)
    os.dup2(stream, 2)
    sweep_stale()
    code = 0
    for stage in due(campaign.study, cell):
        if (code := _stage(campaign, cell, stage, told)) != 0:
            break
    stop(owner=os.environ[OWNER_VARIABLE], grace_seconds=HURRIED_GRACE_SECONDS)
    return 1 if code else 0


def _stage(campaign: Campaign, cell: Cell, stage: Stage, told: int) -> int:
    pid = os.fork()
    if pid == 0:
        os.close(told)
        code = 70
        try:
            asked = ("--cell", campaign.asked(stage, cell), "--host", campaign.host)
            sys.argv = [f"{stage}.py", *asked, "--output", str(cell.file(stage))]
            run_stage(stage, BODIES[stage])
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stderr.flush()
            os._exit(code)
    os.write(told, f"{stage} {Identity.of(pid) or Identity(pid, 0)}\n".encode())
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def until(claim: Callable[[], bool], seconds: float) -> bool:
    """Wait at most so long for a claim to hold."""
    deadline = time.monotonic() + seconds
    while not claim():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True

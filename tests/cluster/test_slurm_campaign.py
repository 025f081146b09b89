"""Six configurations on a real SLURM in which everything goes wrong that can, and what a resume makes of it.

The story is told once, by a fixture; each test is one claim about it.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from cluster.campaign import ClusterFolder, LocalFolder, busy, one_of_each_phase, six_configurations
from cluster.slurm import Slurm
from pivotbench.lease.processes import marked_processes
from pivotbench.results import STAGES
from workflow.campaign import DECISION, Folder, Run

# They share one cluster and one story, so one process runs them all.
pytestmark = [pytest.mark.cluster, pytest.mark.alone, pytest.mark.slow, pytest.mark.timeout(900)]
PATIENCE_SECONDS = 180.0


@dataclass
class Story:
    """The disturbed run, the files it left, the resumed one, and one that had nothing to do."""

    folder: ClusterFolder
    killed: dict[str, str] = field(default_factory=dict)
    disturbed: Run | None = None
    left: dict[str, set[str]] = field(default_factory=dict)
    second: Run | None = None
    resumed: Run | None = None
    states: list[str] = field(default_factory=list)
    planned: Run | None = None


class Narrator:
    """Acts on the cell that is running: waits for the next one whose server was launched."""

    def __init__(self, story: Story, run: subprocess.Popen[str]) -> None:
        self.story, self.run = story, run
        self.seen: set[str] = set()
        self.slurm = story.folder.slurm

    def next_cell(self) -> tuple[str, str]:
        """Wait until another cell's server is up; return its configuration and its job."""
        found: list[tuple[str, str]] = []

        def running() -> bool:
            up = self.story.folder.launched() - self.seen
            found[:] = zip(up, self.slurm.jobs("RUNNING"), strict=False)
            return len(up) == len(found) == 1

        self.until(running, "a further server")
        [(name, job)] = found
        self.seen.add(name)
        return name, job

    def until_over(self, name: str, job: str, state: str) -> None:
        """Wait until SLURM says that a job ended so, and Snakemake has taken note of it."""
        self.until(lambda: self.slurm.state(job) == state, f"job {job} {state}")
        self.story.killed[name] = state
        self.until(lambda: f"SLURM job {job}: {state}" in self.log(), f"{state} in the run's words")

    def log(self) -> str:
        """What the run has printed."""
        return (self.story.folder.path / "run.log").read_text()

    def until(self, claim: Callable[[], object], what: str) -> None:
        """Wait for something while the run goes on."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not claim():
            assert time.monotonic() < deadline, f"never happened: {what}\n{self.log()}"
            assert self.run.poll() is None, f"over before: {what}\n{self.log()}"
            time.sleep(0.1)


@pytest.fixture(scope="module")
def story(slurm: Slurm, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """Cancel a cell, let the next run out of time, pull the plug of the next one's node, drain the node."""
    folder = ClusterFolder.create(tmp_path_factory.mktemp("six"))
    folder.slurm, folder.profile = slurm, "cluster-generic"
    folder.write(six_configurations(folder.path))
    story = Story(folder)
    run = folder.start(DECISION)
    try:
        narrator = Narrator(story, run)
        name, job = narrator.next_cell()
        slurm.ask("scancel", job)
        narrator.until_over(name, job, "CANCELLED")
        name, job = narrator.next_cell()
        slurm.ask("scontrol", "update", f"JobId={job}", "EndTime=now+1")
        narrator.until_over(name, job, "TIMEOUT")
        name, job = narrator.next_cell()
        slurm.kill_node()
        narrator.until_over(name, job, "NODE_FAIL")
        slurm.start_node()
        name, job = narrator.next_cell()
        slurm.ask("scontrol", "update", "NodeName=node", "State=DRAIN", "Reason=maintenance")
        narrator.until(lambda: name in folder.finished(), "the end of the cell on the draining node")
        narrator.until(lambda: "(maintenance)" in narrator.log(), "why the next job waits")
        story.second = folder.snakemake(DECISION)
        slurm.ask("scontrol", "update", "NodeName=node", "State=RESUME")
        run.wait(timeout=PATIENCE_SECONDS)
    finally:
        if run.poll() is None:
            run.kill()
            run.wait()
            slurm.cancel_all()
    story.disturbed = Run(run.returncode, narrator.log())
    story.left = {stage: folder.finished(stage) for stage in STAGES}
    story.resumed = folder.snakemake(DECISION)
    story.states = [slurm.state(job) for job in slurm.jobs()]
    story.planned = folder.snakemake(DECISION, "--dry-run")
    return story


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory, slurm: Slurm) -> Folder:  # noqa: ARG001 (skips with it)
    """The same study on the node by hand."""
    folder = LocalFolder.create(tmp_path_factory.mktemp("local"))
    folder.write(six_configurations(folder.path))
    run = folder.snakemake(DECISION)
    assert run.code == 0, run.text
    return folder


def test_the_run_that_lost_cells_exits_non_zero_with_slurms_own_reasons(story: Story) -> None:
    assert story.disturbed is not None
    assert story.disturbed.code != 0
    for name, state in story.killed.items():
        assert f"results/small/backends/{name}/r1: SLURM job " in story.disturbed.text
        assert f": {state}, " in story.disturbed.text
    assert "reason TimeLimit" in story.disturbed.text


def test_a_killed_cell_leaves_no_file_and_the_others_go_on(story: Story) -> None:
    names = set(story.folder.study()["backends"])
    assert len(story.killed) == 3
    for stage in STAGES:
        assert story.left[stage] == names - set(story.killed)


def test_why_jobs_wait_for_a_drained_node_is_told(story: Story) -> None:
    assert story.disturbed is not None
    assert "no node of partition ci is in use: node drain" in story.disturbed.text
    assert "(maintenance)" in story.disturbed.text


def test_a_second_run_is_refused_while_jobs_of_the_first_are_not_over(story: Story) -> None:
    assert story.second is not None
    assert story.second.code != 0
    assert "are not over" in story.second.text and "scancel" in story.second.text


def test_a_resume_runs_only_what_is_missing(story: Story) -> None:
    assert story.resumed is not None
    assert story.resumed.code == 0, story.resumed.text
    assert story.resumed.cell_jobs() == dict.fromkeys(STAGES, 3)


def test_every_cell_was_one_job(story: Story) -> None:
    assert sorted(story.states) == sorted([*story.killed.values(), *["COMPLETED"] * 6])


def test_a_cell_has_one_server_from_launch_to_teardown(story: Story) -> None:
    servers = {server_of(story.folder.cell(name)) for name in ("good", "slow", "other")}
    assert len(servers) == 3


def test_never_two_servers_at_once(story: Story) -> None:
    times = sorted(busy(story.folder.cell(name)) for name in story.folder.study()["backends"])
    assert len(times) == 6
    assert all(ended <= begun for (_, ended), (begun, _) in pairwise(times)), times


def test_the_environment_is_the_nodes(story: Story) -> None:
    [only] = json.loads((story.folder.results / "environment.json").read_text())["environments"]
    assert [gpu["name"] for gpu in only["environment"]["gpus"]] == ["Paper GPU"]
    assert len(only["cells"]) == 6


def test_a_login_node_without_a_gpu_finds_nothing_stale(story: Story) -> None:
    assert story.planned is not None
    assert story.planned.code == 0
    assert not story.planned.planned, story.planned.text


def test_the_decision_is_that_of_a_local_run(story: Story, local: Folder) -> None:
    here, there = (
        json.loads((folder.results / "decision.json").read_text()) for folder in (story.folder, local)
    )
    for part in (winner, outcomes, pairs, evidence):
        assert part(here) == part(there)


def winner(decision: dict) -> object:  # type: ignore[type-arg]
    return decision["winner"]


def outcomes(decision: dict) -> object:  # type: ignore[type-arg]
    return [(e["configuration"], e["stage"], e["code"]) for e in decision["eliminated"]]


def pairs(decision: dict) -> object:  # type: ignore[type-arg]
    return sorted(tuple(sorted((c["a"], c["b"]))) for c in decision["comparisons"])


def evidence(decision: dict) -> object:  # type: ignore[type-arg]
    return decision["cost"]["launches"]


def test_nothing_is_left_on_the_node(story: Story) -> None:
    left = [p for p, value in marked_processes().items() if str(story.folder.path) in value]
    assert not left


def test_a_missing_stage_is_one_job_of_that_stage_and_later_ones(story: Story) -> None:
    cell = story.folder.cell("slow")
    before = {stage: (cell / f"{stage}.json").stat().st_mtime_ns for stage in ("launch", "smoke")}
    (cell / "throughput.json").unlink()
    run = story.folder.snakemake(str((cell / "teardown.json").relative_to(story.folder.path)))
    assert run.code == 0, run.text
    assert run.cell_jobs() == {"throughput": 1, "teardown": 1}
    assert {stage: (cell / f"{stage}.json").stat().st_mtime_ns for stage in before} == before


@pytest.fixture(scope="module")
def phases(slurm: Slurm, tmp_path_factory: pytest.TempPathFactory) -> tuple[ClusterFolder, Run]:
    """Both phases, by Snakemake's own executor for SLURM."""
    folder = ClusterFolder.create(tmp_path_factory.mktemp("phases"))
    folder.slurm = slurm
    folder.write(one_of_each_phase(folder.path))
    run = folder.snakemake(DECISION)
    assert run.code == 0, run.text
    return folder, run


def test_phase_two_follows_the_race_of_phase_one(phases: tuple[ClusterFolder, Run]) -> None:
    folder, run = phases
    assert run.cell_jobs() == dict.fromkeys(STAGES, 3)
    for name in ("good+none", "good+ngram"):
        assert server_of(folder.cell(name, phase="speculative"))


def server_of(cell: Path) -> str:
    """Return the launch that all stages of a cell used; fails where it was launched anew in between."""
    servers = {json.loads((cell / f"{stage}.json").read_text())["server"]["launch_id"] for stage in STAGES}
    [only] = servers
    return only

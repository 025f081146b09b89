"""What SLURM's commands say is read as they print it; commands that fail or are not there say nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from pivotbench.cluster import slurm

TIMEOUT = (
    "JobId=7 JobName=pivotbench_x UserId=root(0) JobState=TIMEOUT Reason=TimeLimit Dependency=(null) "
    "ExitCode=0:15 Command=(null) NodeList=node7 StdOut=/home/me/logs/7.log Power="
)


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    for name in ("squeue", "scontrol", "sacct", "sinfo"):
        answer(tmp_path, name, "", code=1)
    return tmp_path


def answer(commands: Path, name: str, text: str, code: int = 0) -> None:
    (commands / f"{name}.txt").write_text(text)
    (commands / name).write_text(f"#!/bin/sh\ncat {commands}/{name}.txt\nexit {code}\n")
    (commands / name).chmod(0o755)


def test_a_job_that_the_controller_remembers(commands: Path) -> None:
    answer(commands, "scontrol", TIMEOUT)
    why = "SLURM job 7: TIMEOUT, reason TimeLimit, on node7, log /home/me/logs/7.log"
    assert slurm.why_ended("7") == why


def test_a_job_that_only_the_accounts_remember(commands: Path) -> None:
    answer(commands, "sacct", "CANCELLED by 1000|None|0:0|node7\n")
    assert slurm.why_ended("7") == "SLURM job 7: CANCELLED by 1000, on node7"


def test_a_failed_job_shows_its_exit_code(commands: Path) -> None:
    answer(commands, "scontrol", "JobId=7 JobState=FAILED Reason=NonZeroExitCode ExitCode=1:0 NodeList=n")
    assert slurm.why_ended("7") == "SLURM job 7: FAILED, reason NonZeroExitCode, exit code 1:0, on n"


def test_a_job_that_nobody_remembers_has_no_reason(commands: Path) -> None:
    assert slurm.why_ended("7") is None
    (commands / "sacct").unlink()
    assert slurm.why_ended("7") is None


def test_our_jobs_are_those_of_our_name_and_folder(commands: Path) -> None:
    rows = [
        "1|RUNNING|pivotbench_a|/here|gpu|None",
        "2|PENDING|pivotbench-cell|/here|gpu|Priority",
        "3|RUNNING|pivotbench_a|/elsewhere|gpu|None",
        "4|RUNNING|shell|/here|gpu|None",
    ]
    answer(commands, "squeue", "\n".join(rows) + "\n")
    assert [job.job_id for job in slurm.unfinished("/here")] == ["1", "2"]


JOBS = [
    slurm.QueuedJob("1", "RUNNING", "gpu", "None"),
    slurm.QueuedJob("2", "PENDING", "gpu", "AssocGrpGRES"),
    slurm.QueuedJob("3", "PENDING", "gpu", "Priority"),
    slurm.QueuedJob("4", "PENDING", "gpu", "Resources"),
]


def test_a_job_that_waits_for_its_turn_is_not_held_back(commands: Path) -> None:
    answer(commands, "sinfo", "node[1-7]|allocated|none\nnode8|drained|disk\n")
    assert slurm.held_back(JOBS) == {"2": "AssocGrpGRES"}


def test_jobs_wait_in_vain_where_no_node_is_in_use(commands: Path) -> None:
    answer(commands, "sinfo", "node1|drained|maintenance\nnode2|down*|Not responding\n")
    why = slurm.held_back(JOBS)["4"]
    expected = "no node of partition gpu is in use: node1 drained (maintenance), node2 down* (Not responding)"
    assert why == expected


def test_a_queue_that_does_not_answer_holds_no_job(commands: Path) -> None:
    answer(commands, "squeue", "slurm_load_jobs error: Unable to contact slurm controller\n", code=1)
    assert slurm.unfinished("/here") == []

"""What SLURM itself says of jobs: why one ended, why others wait, which of a folder are not over."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass

# Names of all our jobs begin so; see workflow/profiles.
JOB_PREFIX = "pivotbench"
# Reasons to wait that end by themselves: others run, or SLURM has not looked yet.
PATIENCE = frozenset({"None", "Priority", "Resources", "(null)", ""})
ANSWER_SECONDS = 30.0


# States of a node that starts nothing new, as sinfo spells them; a star means that it does not answer.
OUT_OF_USE = ("down", "drain", "fail", "maint", "error", "unknown", "future", "power")


@dataclass(frozen=True)
class QueuedJob:
    """A job that is not over: its id, its state (RUNNING, PENDING ...), its partition and why it waits."""

    job_id: str
    state: str
    partition: str
    reason: str


def is_here() -> bool:
    """Return whether SLURM's commands are installed on this machine."""
    return shutil.which("squeue") is not None


def unfinished(folder: str) -> list[QueuedJob]:
    """Return our jobs that were submitted from ``folder`` and are not over; none where SLURM is silent."""
    answer = _ask("squeue", "--me", "--noheader", "--format=%i|%T|%j|%Z|%P|%r")
    rows = [line.split("|", 5) for line in (answer or "").splitlines()]
    return [
        QueuedJob(row[0], row[1], row[4], row[5])
        for row in rows
        if len(row) == 6 and row[2].startswith(JOB_PREFIX) and row[3] == folder
    ]


def held_back(jobs: Iterable[QueuedJob]) -> dict[str, str]:
    """Return why jobs wait for something other than their turn, by job id."""
    waiting = [job for job in jobs if job.state == "PENDING"]
    unusable = {name: _unusable(name) for name in {job.partition for job in waiting}}
    found = {}
    for job in waiting:
        if nodes := unusable[job.partition]:
            found[job.job_id] = f"no node of partition {job.partition} is in use: {nodes}"
        elif job.reason not in PATIENCE:
            found[job.job_id] = job.reason
    return found


def _unusable(partition: str) -> str | None:
    """Return the states of a partition's nodes, with the reasons given for them, where none takes a job."""
    answer = _ask("sinfo", "--noheader", f"--partition={partition}", "--format=%N|%T|%E")
    rows = [row for line in (answer or "").splitlines() if len(row := line.split("|", 2)) == 3]
    if not rows or not all(state.startswith(OUT_OF_USE) for _, state, _ in rows):
        return None
    return ", ".join(f"{nodes} {state} ({reason})" for nodes, state, reason in rows)


def why_ended(job_id: str) -> str | None:
    """Return in one line how SLURM says a job ended: state, reason, exit code, node; None where it forgot.

    The controller remembers a finished job for MinJobAge seconds, the accounting (if there is one) longer.
    """
    told = _from_controller(job_id) or _from_accounting(job_id)
    if told is None:
        return None
    state, reason, exit_code, node, log = told
    said = [f"SLURM job {job_id}: {state}"]
    if reason not in PATIENCE:
        said.append(f"reason {reason}")
    if state == "FAILED":
        said.append(f"exit code {exit_code}")
    if node:
        said.append(f"on {node}")
    if log:
        said.append(f"log {log}")
    return ", ".join(said)


def _from_controller(job_id: str) -> tuple[str, str, str, str, str] | None:
    answer = _ask("scontrol", "--oneliner", "show", "job", job_id)
    if answer is None:
        return None
    # Values with spaces lose their tails, which none of those read here has.
    fields = dict(word.split("=", 1) for word in answer.split() if "=" in word)
    if "JobState" not in fields:
        return None
    node = fields.get("NodeList", "").replace("(null)", "")
    return (
        fields["JobState"],
        fields.get("Reason", ""),
        fields.get("ExitCode", ""),
        node,
        fields.get("StdOut", ""),
    )


def _from_accounting(job_id: str) -> tuple[str, str, str, str, str] | None:
    form = "--format=State,Reason,ExitCode,NodeList"
    answer = _ask("sacct", "--allocations", "--noheader", "--parsable2", form, "--jobs", job_id)
    row = (answer or "").strip().split("|")
    return (row[0], row[1], row[2], row[3], "") if len(row) == 4 else None


def _ask(*command: str) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None

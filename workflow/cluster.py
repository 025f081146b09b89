"""What a run on a cluster says beyond what Snakemake does: the scheduler's own words."""

from __future__ import annotations

import logging
import sys
import threading
from collections import Counter
from pathlib import Path

from pivotbench.cluster import slurm
from pivotbench.errors import UserError


def refuse_two_runs() -> None:
    """Raise UserError where jobs of an earlier run here are not over: both would write the same cells."""
    jobs = slurm.unfinished(str(Path.cwd())) if slurm.is_here() else []
    if jobs:
        ids = " ".join(job.job_id for job in jobs)
        raise UserError(
            f"{len(jobs)} SLURM jobs of an earlier run in this folder are not over ({ids}): "
            f"wait for them, or end them with: scancel {ids}"
        )


def speak_for_slurm(every_seconds: float) -> None:
    """From now on, print why SLURM ended a failed job and why it holds jobs back."""
    if slurm.is_here():
        logging.getLogger("snakemake.logging").addHandler(EndOfJobs())
        threading.Thread(target=_watch_queue, args=(every_seconds,), daemon=True).start()


class EndOfJobs(logging.Handler):
    """Follows each job error of Snakemake with SLURM's reason, which Snakemake drops for grouped jobs."""

    def emit(self, record: logging.LogRecord) -> None:
        aux = getattr(record, "aux", None) or {}
        job_id = getattr(record, "external_jobid", None) or aux.get("external_jobid")
        if record.levelno >= logging.ERROR and str(job_id).isdigit():
            why = slurm.why_ended(str(job_id)) or f"SLURM job {job_id}: no longer known to SLURM"
            print(f"{_cell(record)}: {why}", file=sys.stderr, flush=True)


def _cell(record: logging.LogRecord) -> str:
    """The folder of the cell that the failed job was to fill."""
    jobs = getattr(record, "job_error_info", None) or [{"output": getattr(record, "output", [])}]
    return next((str(Path(path).parent) for job in jobs for path in job["output"]), "a job")


def _watch_queue(every_seconds: float) -> None:
    said: set[str] = set()
    pause = threading.Event()
    while not pause.wait(every_seconds):
        reasons = Counter(slurm.held_back(slurm.unfinished(str(Path.cwd()))).values())
        for reason in reasons.keys() - said:
            print(f"SLURM holds jobs back ({reasons[reason]}): {reason}", file=sys.stderr, flush=True)
        said |= reasons.keys()

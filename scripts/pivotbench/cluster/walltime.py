"""How long a stage may take by what the study itself says: the time limit that a cluster is asked for.

These are upper estimates, so that a healthy cell is never cut off: a launch at its timeout, every answer at a
tenth of a second a token. What a cluster ends at this limit was not going to be a measurement.
"""

from __future__ import annotations

import math

from pivotbench.pace import SLOW_TOKEN_SECONDS
from pivotbench.results import Stage
from pivotbench.study import Study
from pivotbench.study.throughput import Throughput, Workload

# The job's own Snakemake, imports from a slow file system, a request before its first token.
OVERHEAD_SECONDS = 60.0
# A server's end: its grace, the return of its memory, the record.
TEARDOWN_SECONDS = 120.0


def stage_minutes(study: Study, stage: Stage) -> int:
    """Return the minutes to ask of a cluster for one stage; those of a cell are their sum."""
    seconds = {
        "launch": study.hosts.launch_timeout_seconds,
        "smoke": _smoke_seconds(study),
        "throughput": _throughput_seconds(study.throughput),
        "teardown": TEARDOWN_SECONDS,
    }[stage]
    return math.ceil((seconds + OVERHEAD_SECONDS) / 60)


def _smoke_seconds(study: Study) -> float:
    smoke = study.smoke
    return len(smoke.prompts) * smoke.repeats * smoke.max_tokens * SLOW_TOKEN_SECONDS


def _throughput_seconds(throughput: Throughput) -> float:
    return math.fsum(
        seconds
        for workload in throughput.workloads.values()
        for seconds in (
            *(_closed_seconds(throughput, workload, streams) for streams in workload.concurrency),
            *(_open_seconds(throughput, workload, rate) for rate in workload.rate),
        )
    )


def _closed_seconds(throughput: Throughput, workload: Workload, streams: int) -> float:
    """The warm-up, the measured time and one last answer, at so many requests in flight."""
    answer = workload.output_tokens * SLOW_TOKEN_SECONDS
    asked = math.ceil(throughput.min_requests / streams) * answer
    return throughput.seconds + max(throughput.seconds, asked) + 2 * answer


def _open_seconds(throughput: Throughput, workload: Workload, rate: float) -> float:
    answer = workload.output_tokens * SLOW_TOKEN_SECONDS
    return throughput.seconds + max(throughput.seconds, throughput.min_requests / rate) + 2 * answer

"""How long a study's stages take by what the study says: for `validate`, and for a cluster's time limits."""

from __future__ import annotations

import math
from collections.abc import Iterator

from pivotbench.engines.forced import LONGEST_TOKENS
from pivotbench.pace import (
    MOST_RESTARTS,
    STALL_SECONDS,
    LoadTime,
    answer_seconds,
    closed_loop,
    open_loop,
)
from pivotbench.prompt_files import most_tokens
from pivotbench.results import Stage
from pivotbench.study import Study
from pivotbench.study.continuations import read_continuations

# A server's end: its grace, the return of its memory, the record.
TEARDOWN_SECONDS = 120.0


def most_seconds(study: Study, stage: Stage) -> float:
    """Return what a stage of a working server may take, and one that fails for a request that hangs.

    A launch takes its timeout, every answer the time of a slow server, every load its restarts.
    """
    return {
        "launch": study.hosts.launch_timeout_seconds,
        "smoke": _smoke_seconds(study) + STALL_SECONDS,
        "throughput": math.fsum(map(_whole_seconds, loads(study))) + STALL_SECONDS,
        "teardown": TEARDOWN_SECONDS,
    }[stage]


def _whole_seconds(load: LoadTime) -> float:
    return load.most_seconds + MOST_RESTARTS * load.again_seconds


def measured_seconds(study: Study) -> tuple[float, float]:
    """Return how long all loads of a cell are measured: at least, and at most at the pace of a slow one."""
    times = list(loads(study))
    return (
        math.fsum(load.measured_least_seconds for load in times),
        math.fsum(load.measured_most_seconds for load in times),
    )


def loads(study: Study) -> Iterator[LoadTime]:
    """Yield the time of every load of a cell."""
    throughput = study.throughput
    asked = throughput.seconds, throughput.min_requests
    for workload in throughput.workloads.values():
        answer = answer_seconds(workload.output_tokens, workload.most_prompt_tokens)
        for streams in workload.concurrency:
            yield closed_loop(*asked, streams, answer)
        for rate in workload.rate:
            yield open_loop(*asked, rate, answer)


def _smoke_seconds(study: Study) -> float:
    smoke = study.smoke
    asked = (most_tokens({"prompt": prompt.ask}) for prompt in smoke.prompts)
    answers = smoke.repeats * math.fsum(answer_seconds(smoke.max_tokens, tokens) for tokens in asked)
    followed = len(read_continuations(smoke.continuations)) if smoke.continuations is not None else 0
    # Where a server tells no log probabilities of a prompt, each token of a continuation is a request.
    return answers + followed * answer_seconds(LONGEST_TOKENS)

"""What is to be measured, and what comes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pivotbench.client.record import RequestRecord, Stop
from pivotbench.pace import STALL_SECONDS, standstill_seconds
from pivotbench.prompt_files import most_tokens, read_prompts
from pivotbench.results import Reason


@dataclass(frozen=True)
class WorkloadPlan:
    """One workload: a prompt file (kind text), or lengths of prompts in tokens (kind synthetic).

    Each ``concurrency`` is a closed loop, each ``rate`` (requests a second) an open one. ``stop``: an answer
    ends at ``output_tokens``, or at its natural end and there at the latest. ``shared_prefix`` is
    the share of each synthetic prompt that all prompts of a run have in common.
    """

    name: str
    kind: str
    output_tokens: int
    concurrency: tuple[int, ...] = ()
    rate: tuple[float, ...] = ()
    prompts: Path | None = None
    prompt_tokens: tuple[int, ...] = ()
    shared_prefix: float = 0.0
    stop: Stop = "length"

    @cached_property
    def most_prompt_tokens(self) -> int:
        """The tokens of the longest prompt; of texts a bound of them."""
        if self.prompts is None:
            return max(self.prompt_tokens)
        return max(most_tokens(prompt, self.output_tokens) for prompt in read_prompts(self.prompts))


@dataclass(frozen=True)
class LoadPlan:
    """The throughput section of a study.

    ``seconds`` and ``min_requests`` bound the measured time of each run from below,
    ``windows`` is the number of samples it is cut into. ``seed`` fixes salts, synthetic prompts, prompt
    order and arrivals; it must not depend on the configuration, so that all of them answer the same.
    """

    seconds: float
    windows: int
    min_requests: int
    workloads: tuple[WorkloadPlan, ...]
    seed: str
    stall_seconds: float = STALL_SECONDS

    def standstill_seconds(self, workload: WorkloadPlan) -> float:
        """Return for how long a server under this workload may give no token."""
        return standstill_seconds(self.seconds, self.windows, workload.most_prompt_tokens)

    @classmethod
    def from_json(cls, data: Mapping[str, Any], *, seed: str) -> LoadPlan:
        """Return the plan in a study's throughput section; workloads run in the order of their names."""
        return cls(
            seconds=float(data["seconds"]),
            windows=int(data["windows"]),
            min_requests=int(data["min_requests"]),
            workloads=tuple(
                WorkloadPlan(
                    name=name,
                    kind=workload["kind"],
                    output_tokens=int(workload["output_tokens"]),
                    concurrency=tuple(int(c) for c in workload.get("concurrency") or ()),
                    rate=tuple(float(r) for r in workload.get("rate") or ()),
                    prompts=Path(workload["prompts"]) if workload.get("prompts") else None,
                    prompt_tokens=tuple(int(n) for n in workload.get("prompt_tokens") or ()),
                    shared_prefix=float(workload.get("shared_prefix") or 0.0),
                    stop=workload.get("stop", "length"),
                )
                for name, workload in sorted(data["workloads"].items())
            ),
            seed=seed,
        )


@dataclass(frozen=True)
class Measured:
    """A run's measured time, in seconds from its start; ``begin`` is None if it never came to that.

    ``restarts`` is how often it began anew after the server had stood still, for ``stood_still_seconds`` in
    all; a silence of ``standstill_seconds`` is no standstill yet. ``in_flight_limit`` tells that an open loop
    ended early, with so many requests in flight.
    """

    begin_seconds: float | None
    end_seconds: float | None
    warmup_requests: int
    warmup_seconds: float
    warmup_stable: bool
    lag_p99_seconds: float | None
    client_cpu_percent: float | None
    standstill_seconds: float
    restarts: int = 0
    stood_still_seconds: float = 0.0
    in_flight_limit: int | None = None


@dataclass(frozen=True)
class LoadOutcome:
    """The runs as in throughput.json, the raw requests, and why measuring ended early, if it did."""

    runs: list[dict[str, Any]]
    records: list[RequestRecord]
    reason: Reason | None

"""The one number that decides a study, and whether what the study measures gives it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, model_validator

from pivotbench.latency_limits import LATENCIES
from pivotbench.study.fields import Positive, Seconds, Strict, refusal
from pivotbench.study.throughput import Throughput
from pivotbench.wording import listed, quoted, suggestion


class Percentiles(Strict):
    """The longest time that a share of all requests may take, in seconds: p99 is that of 99 in 100."""

    p50: Seconds | None = Field(default=None, description="Half of the requests take no longer.")
    p90: Seconds | None = Field(default=None, description="90 % take no longer.")
    p95: Seconds | None = Field(default=None, description="95 % take no longer.")
    p99: Seconds | None = Field(default=None, description="99 % take no longer.")

    @model_validator(mode="after")
    def _one_at_least(self) -> Percentiles:
        if not self.limited:
            raise refusal("give at least one percentile: p50, p90, p95 or p99")
        return self

    @property
    def limited(self) -> dict[str, float]:
        """The limits by percentile."""
        return self.model_dump(exclude_none=True)


class Goodput(Strict):
    """The largest load that meets every limit; what decides is the output tok/s there."""

    over: Literal["concurrency", "rate"] = Field(
        description="Which of the measured loads are searched: closed loops by concurrency, or open loops by "
        "rate. Between two of them the limit's crossing is interpolated."
    )
    ttft_seconds: Percentiles | None = Field(
        default=None, description="Time to first token; at a rate from the time the request was to be sent."
    )
    tpot_seconds: Percentiles | None = Field(
        default=None, description="Time per output token after the first."
    )
    e2e_seconds: Percentiles | None = Field(
        default=None, description="Time to the last token; begins as ttft_seconds does."
    )

    @model_validator(mode="after")
    def _one_at_least(self) -> Goodput:
        if not self.limited:
            raise refusal(f"give at least one limit: {listed(list(LATENCIES))}")
        return self

    @property
    def limited(self) -> dict[str, dict[str, float]]:
        """The limits by latency and percentile."""
        given: dict[str, Percentiles | None] = {name: getattr(self, name) for name in LATENCIES}
        return {name: percentiles.limited for name, percentiles in given.items() if percentiles is not None}


class Metric(Strict):
    """The one number that decides: the weighted geometric mean of output tokens per second."""

    workloads: dict[str, Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]] = Field(
        min_length=1, description="Weight of each workload that counts."
    )
    concurrency: Positive | None = Field(
        default=None, description="Requests in flight at which speed counts. Give this or goodput."
    )
    goodput: Goodput | None = Field(
        default=None, description="Limits of latency, where speed counts at the largest load that meets them."
    )

    @model_validator(mode="after")
    def _one_scalar(self) -> Metric:
        if self.concurrency is None and self.goodput is None:
            raise refusal("say at which load speed counts: concurrency, or goodput with its limits")
        if self.concurrency is not None and self.goodput is not None:
            raise refusal("one number decides: give concurrency or goodput, not both", "goodput")
        return self

    def check(self, throughput: Throughput, *at: str) -> None:
        """Refuse a metric that the study does not measure; ``at`` leads to the metric."""
        workloads = throughput.workloads
        for name in self.workloads:
            if name not in workloads:
                message = f"no workload {quoted(name)}; {suggestion(name, list(workloads))}"
                raise refusal(message, *at, "workloads", name)
            if self.goodput is not None:
                measured = getattr(workloads[name], self.goodput.over)
                if len(measured) < 2:
                    message = (
                        f"the largest load is looked for among several, and workload {quoted(name)} has "
                        f"{_levels(measured)} as {self.goodput.over}"
                    )
                    raise refusal(message, *at, "goodput", "over")
            elif self.concurrency not in workloads[name].concurrency:
                levels = _levels(workloads[name].concurrency) if workloads[name].concurrency else "rates"
                raise refusal(f"workload {quoted(name)} is measured at {levels} only", *at, "concurrency")
        for latency, percentiles in (self.goodput.limited if self.goodput else {}).items():
            for percentile in percentiles:
                needed = math.ceil(100 / (100 - int(percentile[1:])))
                if throughput.min_requests < needed:
                    message = (
                        f"a {percentile} of fewer than {needed} requests is their slowest; set "
                        f"throughput.min_requests ({throughput.min_requests}) to {needed} or more"
                    )
                    raise refusal(message, *at, "goodput", latency, percentile)


def _levels(measured: Sequence[float]) -> str:
    return listed([f"{level:g}" for level in measured]) if measured else "none"

"""The shape of what decision.json says of loads: goodput, what to serve, crossings, Pareto set, rates."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class GoodputPart(_Part):
    """Where output tok/s counts: at the largest load that meets every limit, in seconds by percentile."""

    over: Literal["concurrency", "rate"]
    ttft_seconds: dict[str, float] | None = None
    tpot_seconds: dict[str, float] | None = None
    e2e_seconds: dict[str, float] | None = None


class RoundPart(_Part):
    """The metric in one round."""

    round: int
    tok_s: float


class PlacePart(_Part):
    """A load: a workload, null for the study's weighted mix, at a concurrency, null for goodput."""

    workload: str | None
    concurrency: int | None


class RivalPart(_Part):
    """How another configuration stands to the best of a load; ratio > 1 means that it is faster."""

    configuration: str
    mean_tok_s: float
    ratio: float | None
    ci: tuple[float, float] | None = Field(description="corrected for loads, comparisons and looks")
    verdict: Literal["faster", "slower", "equivalent", "undecided", "not_comparable"]


class LoadPart(PlacePart):
    """One load in one phase."""

    phase: str
    decides: bool = Field(description="this load is the metric: its verdicts are those that decide")
    best: str = Field(
        description="the highest mean; in the phase of speculation, of those shown to beat the baseline, "
        "else the baseline"
    )
    mean_tok_s: float
    standing: Literal["leads", "equivalent", "undecided", "alone"]
    others: list[RivalPart] = Field(description="highest mean first")


class BestPart(PlacePart):
    """What to serve at one load, by all phases."""

    decides: bool
    configuration: str
    mean_tok_s: float
    standing: Literal["leads", "equivalent", "undecided", "alone"] = Field(
        description="leads: all others are shown to be slower; undecided: some are not told apart from it"
    )
    equivalent: list[str]
    undecided: list[str]


class CrossingPart(_Part):
    """Two configurations whose order changes with the load.

    crossing: a is shown to be faster at one, b at the other, and no load measured between decides the pair.
    undecided: the best changes between neighbouring loads, and no verdict says so.
    """

    phase: str
    along: Literal["concurrency", "workload"]
    a: str
    b: str
    a_ahead_at: PlacePart
    b_ahead_at: PlacePart
    verdict: Literal["crossing", "undecided"]


class RegionsPart(_Part):
    """What to serve by load, and where that changes."""

    confidence: float = Field(description="of all verdicts by load of one phase together")
    statement: str
    by_load: list[LoadPart]
    best: list[BestPart]
    crossings: list[CrossingPart]


class ParetoPart(_Part):
    """An operating point that no other of its workload beats in both throughput and latency, by means."""

    workload: str
    configuration: str
    concurrency: int
    output_tok_s: float = Field(description="of the whole server")
    output_tok_s_per_gpu: float | None = Field(description="null without a GPU")
    tok_s_per_user: float = Field(description="1 / tpot_p50_seconds")
    tpot_p50_seconds: float
    ttft_p50_seconds: float | None
    ttft_p99_seconds: float | None


class OpenLoopPart(_Part):
    """A configuration under a rate of arrivals: medians over its rounds; null where no run tells."""

    phase: str
    configuration: str
    workload: str
    rate_per_second: float = Field(description="arrivals asked for")
    arrived_per_second: float | None = Field(description="in the measured time; random, so not just the rate")
    completed_per_second: float | None
    requests_lost: int = Field(description="failed, fell short or timed out, in all rounds")
    ttft_p50_seconds: float | None = Field(description="latencies run from the intended send time")
    ttft_p99_seconds: float | None
    e2e_p99_seconds: float | None
    in_flight_peak: int | None = Field(description="the highest of all rounds")
    rounds: int
    rounds_sustained: int = Field(description="rounds in which the requests in flight did not pile up")

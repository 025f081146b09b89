"""The shape of decision.json; its JSON schema is generated from here."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from pivotbench.agreement.document import AgreementPart
from pivotbench.decision.levers.document import LeverPart, LimitPart
from pivotbench.decision.loads.document import GoodputPart, OpenLoopPart, ParetoPart, RegionsPart, RoundPart
from pivotbench.files import write_json

SCHEMA_FILE = Path(__file__).parents[3] / "workflow" / "schemas" / "decision.schema.json"

Ci = tuple[float, float]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class MetricPart(_Part):
    """The one scalar that decides."""

    workloads: dict[str, float] = Field(description="weights in the geometric mean")
    concurrency: int | None = Field(description="null: goodput says at which load speed counts")
    goodput: GoodputPart | None
    margin: float = Field(description="relative difference that does not matter")
    confidence: float = Field(description="probability that all intervals of a phase hold at all looks")
    unit: Literal["output tok/s"] = "output tok/s"


class NoisePart(_Part):
    """Pooled standard deviation between launches of one configuration, on the log scale."""

    sd: float
    df: int


class ConfidencePart(_Part):
    """What the intervals promise, and over what their error is divided."""

    looks: int = Field(description="rounds after which the evidence may be judged")
    comparisons: dict[str, int] = Field(description="pairs the error is divided over, by phase")
    noise: dict[str, NoisePart | None] = Field(description="launch-to-launch noise by phase")
    statement: str


class RankingPart(_Part):
    """A configuration's mean of the metric; ``ci`` is for this mean alone, uncorrected."""

    phase: str
    configuration: str
    mean_tok_s: float
    ci: Ci | None
    rounds: int
    by_round: list[RoundPart]
    at_least: bool = Field(description="goodput that may be higher: no measured load crosses the limits")
    at_most: bool = Field(description="goodput that may be lower: some rounds met the limits at no load")
    between: bool = Field(description="goodput whose value lies between two loads, known no closer")
    largest_load: dict[str, float] | None = Field(
        description="for goodput: by workload the largest load within the limits, mean over rounds"
    )


class RunnerUpPart(_Part):
    """The next choice of the phase in which the winner was ranked."""

    configuration: str
    launch_command: str | None


class ClassPart(_Part):
    """Configurations shown to be equivalent to their leader."""

    phase: str
    leader: str
    members: list[str]
    against_best: Literal["best", "faster", "slower", "equivalent", "undecided", "not_comparable"] = Field(
        description="the leader's verdict on the fastest of the phase; undecided: the border is no finding"
    )


class ComparisonPart(_Part):
    """How a stands to b; ratio > 1 means that a is faster."""

    phase: str
    a: str
    b: str
    ratio: float | None
    ci: Ci | None = Field(description="corrected for comparisons and looks")
    verdict: Literal["faster", "slower", "equivalent", "undecided", "not_comparable"]
    rounds_needed: int | None = Field(description="further rounds of both that would likely decide")
    confounders: list[str]
    reason: str | None = Field(description="why there is no decision")


class EliminatedPart(_Part):
    """A configuration that does not work."""

    phase: str
    configuration: str
    stage: str
    code: str
    reason: str
    evidence: list[str]
    links: list[str]
    remedy: str | None = Field(default=None, description="what to do about it, where that is known")


class SpeculationPart(_Part):
    """Whether a speculative configuration pays on one workload at one concurrency."""

    configuration: str
    baseline: str
    workload: str
    concurrency: int
    speedup: float | None
    ci: Ci | None
    acceptance_length: float | None = Field(description="output tokens per target forward pass")
    draft_proposed: int | None
    draft_accepted: int | None
    step_cost_ratio: float | None = Field(description="time per pass over the baseline's time per token")
    break_even: float | None = Field(description="acceptance length at which the speed-up is 1")
    derived: bool = Field(description="passes were not counted by the server but derived")
    evidence: Literal["text", "synthetic", "simulated"]
    verdict: Literal["pays", "costs", "equal", "undecided"]
    rounds_needed: int | None
    confounders: list[str] = Field(description="what differed from the baseline though nobody asked for it")
    why: str


class HypothesisPart(_Part):
    """A statement and what the data say of it."""

    statement: str
    verdict: Literal["supported", "refuted", "undecided", "untested"]
    evidence: str


class ThreatPart(_Part):
    """Why the decision may not hold."""

    code: str
    message: str


class CostPart(_Part):
    """What the evidence cost; stages' durations, a GPU counted for each second its server was held."""

    gpu_seconds: float
    server_seconds: float
    launches: int
    full_sweep_gpu_seconds: float = Field(description="estimate: every configuration in every round")
    full_sweep_server_seconds: float


class EvidencePart(_Part):
    """The rounds of a configuration that the decision rests on; other files in the folder are no evidence."""

    phase: str
    configuration: str
    rounds: list[int]


class Decision(_Part):
    """decision.json: what was chosen, why, and what remains open."""

    schema_: Literal["pivotbench/decision/4"] = Field(alias="schema")
    study: str
    engine: str
    model: str
    metric: MetricPart
    environment: dict[str, Any] = Field(description="that of the winner's last launch")
    confidence: ConfidencePart
    winner: str | None = Field(description="null: nothing is healthy, or nothing could be ranked")
    launch_command: str | None
    runner_up: RunnerUpPart | None = Field(description="null: nothing else was ranked with the winner")
    ranking: list[RankingPart]
    classes: list[ClassPart]
    comparisons: list[ComparisonPart]
    eliminated: list[EliminatedPart]
    agreement: list[AgreementPart] = Field(description="by phase; none where nothing was answered")
    speculation: list[SpeculationPart]
    regions: RegionsPart = Field(description="what to serve by load, beside the metric that decides")
    pareto: list[ParetoPart] = Field(description="throughput against latency, by workload")
    open_loop: list[OpenLoopPart] = Field(
        description="by workload, rate and configuration; they decide nothing but goodput over rates"
    )
    limit: LimitPart
    hypotheses: list[HypothesisPart]
    next_levers: list[LeverPart]
    threats: list[ThreatPart]
    cost: CostPart
    evidence: list[EvidencePart] = Field(description="the cells it rests on, for report and comparison")
    log: list[str]


def validated(decision: dict[str, Any]) -> dict[str, Any]:
    """Return the decision as JSON values in the model's key order; raises pydantic.ValidationError."""
    return Decision.model_validate(decision).model_dump(mode="json", by_alias=True)


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of decision.json."""
    schema = Decision.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


if __name__ == "__main__":
    write_json(SCHEMA_FILE, json_schema())

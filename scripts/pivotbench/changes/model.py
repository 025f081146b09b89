"""The shape of compare.json; its JSON schema is generated from here."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from pivotbench.agreement.document import DeparturesPart
from pivotbench.decision.document import MetricPart, ThreatPart
from pivotbench.files import write_json

SCHEMA = "pivotbench/compare/2"
SCHEMA_FILE = Path(__file__).parents[3] / "workflow" / "schemas" / "compare.schema.json"

Ci = tuple[float, float]
Kind = Literal[
    "winner",
    "broke",
    "mended",
    "appeared",
    "vanished",
    "still_broken",
    "slower",
    "faster",
    "equivalent",
    "undecided",
    "not_comparable",
    "together",
    "answers",
    "environment",
    "study",
    "flags",
]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class FolderPart(_Part):
    """One of the two folders."""

    folder: str = Field(description="as it was given")
    study: str
    winner: str | None
    launch_command: str | None
    measured: str | None = Field(description="the days on which its launches began")


class LinePart(_Part):
    """One line of the changelog."""

    kind: Kind
    phase: str | None
    configuration: str | None
    line: str


class DifferencePart(_Part):
    """Something around the figures that differs; null: that folder has none."""

    what: str
    old: str | None
    new: str | None


class SpeedPart(_Part):
    """A configuration in the new folder against itself in the old one; ratio > 1: it has become faster."""

    phase: str
    configuration: str
    old_tok_s: float = Field(description="geometric mean of its launches, odd ones set aside")
    new_tok_s: float
    ratio: float | None
    ci: Ci | None = Field(description="carries the verdict; corrected for the number of comparisons")
    verdict: Literal["faster", "slower", "equivalent", "undecided", "not_comparable"]
    old_rounds: int
    new_rounds: int
    rounds_needed: int | None = Field(description="further rounds in both folders that would likely decide")
    confounders: list[str] = Field(description="what the hardware did otherwise, old | new")
    reason: str | None = Field(description="why there is no decision")


class LoadSpeedPart(SpeedPart):
    """The same at one workload and concurrency."""

    workload: str
    concurrency: int


class TogetherPart(_Part):
    """How all configurations ranked in both folders moved; a change of the machine looks like this."""

    configurations: int
    ratio: float = Field(description="geometric mean of their ratios")
    lowest: float
    highest: float


class OutcomePart(_Part):
    """What became of a configuration in one folder."""

    state: Literal["works", "eliminated", "absent"]
    code: str | None
    reason: str | None


class ConfigurationPart(_Part):
    """A configuration of either folder."""

    phase: str
    configuration: str
    fate: Literal["works", "broke", "mended", "still_broken", "appeared", "vanished"]
    old: OutcomePart
    new: OutcomePart
    requested: list[str] = Field(description="flags asked for that differ, name: old | new")
    effective: list[str] = Field(description="settings in effect that differ though nobody asked for it")


class AnswersPart(_Part):
    """A configuration's answers against those it gave in the old folder."""

    phase: str
    configuration: str
    prompts: int = Field(description="prompts that both answered")
    equal: int = Field(description="prompts on which most answers are the old text")
    departures: DeparturesPart
    distance_nats: float | None = Field(description="of log probabilities of the fixed continuations, mean")
    distance_tokens: int
    answer_distance_nats: float | None = Field(description="the same on what both answered")
    answer_distance_tokens: int
    bound_nats: float
    failed: list[str] = Field(description="prompts it fails though it answered them well before")
    verdict: Literal["same", "changed", "disagree", "unknown"]
    why: str


class WinnerPart(_Part):
    """The winners; ``speed``: the new one in the new folder against the old one in the old folder."""

    old: str | None
    new: str | None
    speed: SpeedPart | None


class GatePart(_Part):
    """Whether compare_gate lets the change pass, and every reason against it."""

    passed: bool
    reasons: list[str]


class Compare(_Part):
    """compare.json: what changed between two folders of results."""

    schema_: Literal["pivotbench/compare/2"] = Field(alias="schema")
    old: FolderPart
    new: FolderPart
    metric: MetricPart = Field(description="of both; margin and confidence are the new folder's")
    statement: str = Field(description="what the intervals promise, and what no interval can")
    changelog: list[LinePart]
    gate: GatePart
    winner: WinnerPart
    together: TogetherPart | None
    speeds: list[SpeedPart] = Field(description="on the metric; one family of verdicts")
    speeds_by_load: list[LoadSpeedPart] = Field(description="a family of its own")
    configurations: list[ConfigurationPart]
    answers: list[AnswersPart]
    threats: list[ThreatPart] = Field(description="why a change may have another cause, or not be one")
    environment: list[DifferencePart]
    study: list[DifferencePart]


def validated(comparison: dict[str, Any]) -> dict[str, Any]:
    """Return compare.json as JSON values in the model's key order; raises pydantic.ValidationError."""
    return Compare.model_validate(comparison).model_dump(mode="json", by_alias=True)


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of compare.json."""
    schema = Compare.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


if __name__ == "__main__":
    write_json(SCHEMA_FILE, json_schema())

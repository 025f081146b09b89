"""The shape of what decision.json says of answers: how each configuration agrees with the reference."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class DeparturesPart(_Part):
    """On how many prompts most answers leave the reference's text, by how near a tie it was there."""

    near_tie: int = Field(description="the two tokens were about equally likely to the reference: rounding")
    clear: int
    unknown: int


class GreedyTextPart(_Part):
    """Whether speculation keeps the baseline's greedy text, as a relaunch of the baseline does."""

    verdict: Literal["same", "changed", "unknown"]
    why: str


class AgreeingPart(_Part):
    """One configuration's answers against the reference's, over all rounds and repeats."""

    configuration: str
    prompts: int = Field(description="prompts that both answered")
    equal: int = Field(description="prompts on which most answers are the reference's text")
    departures: DeparturesPart
    shortest_common_prefix: int | None
    prefix_unit: Literal["tokens", "characters"] | None
    distance_nats: float | None = Field(
        description="mean absolute difference of log probabilities on the fixed continuations"
    )
    distance_tokens: int = Field(description="tokens that this is the mean of")
    answer_distance_nats: float | None = Field(
        description="the same on the tokens that first answers have in common; null below 16 of them"
    )
    answer_distance_tokens: int
    failed: list[str] = Field(description="prompts it fails though the reference answers them well")
    excused: list[str] = Field(description="the only such prompt, where the answer left at a near tie")
    repeatability: float | None = Field(description="share of prompts whose repeats in one launch are equal")
    steady: int = Field(description="prompts whose answers are equal over all launches and repeats")
    greedy_text: GreedyTextPart | None = Field(description="for speculative configurations")


class AgreementPart(_Part):
    """How the answers of one phase agree with those of its reference configuration."""

    phase: str
    reference: str
    judged: bool = Field(description="false: the reference fails every prompt, so nobody was put out")
    statement: str
    prompts: int
    set_aside: list[str] = Field(description="prompts that the reference itself fails")
    bound_nats: float = Field(description="above this distance a configuration disagrees")
    near_tie_nats: float = Field(description="up to this gap between two tokens a departure is rounding")
    configurations: list[AgreeingPart]

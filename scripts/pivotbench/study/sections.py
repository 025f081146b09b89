"""How a study judges: smoke test, metric, rounds, hosts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from pivotbench.arithmetic import evaluate
from pivotbench.expectations import EXPECTATIONS
from pivotbench.study.continuations import read_continuations
from pivotbench.study.fields import (
    Line,
    Positive,
    Seconds,
    Strict,
    StudyPath,
    Text,
    as_shown,
    check_file,
    refusal,
)
from pivotbench.study.metric import Metric


class SmokePrompt(Strict):
    """One question of the smoke test, with at most one expectation of the answer."""

    ask: Text = Field(description="What the user says.")
    contains: Text | None = Field(default=None, description="The answer must contain this text.")
    matches: Text | None = Field(default=None, description="The answer must match this regular expression.")
    equals: Text | None = Field(default=None, description="The answer, trimmed, must be this text.")
    arithmetic: Text | None = Field(
        default=None, description="The answer must state the value of this sum, e.g. `17*23`, as a number."
    )

    @model_validator(mode="after")
    def _one_expectation(self) -> SmokePrompt:
        given = [key for key in EXPECTATIONS if getattr(self, key) is not None]
        if len(given) > 1:
            raise refusal(f"give one expectation, not {' and '.join(given)}", given[1])
        if self.matches is not None:
            try:
                re.compile(self.matches)
            except (re.error, RecursionError, OverflowError) as error:
                raise refusal(f"not a regular expression: {error}", "matches") from None
        if self.arithmetic is not None:
            try:
                evaluate(self.arithmetic)
            except ValueError as error:
                raise refusal(f"{error}", "arithmetic") from None
        return self


class Smoke(Strict):
    """The smoke test: does the server answer sensibly at all?"""

    max_tokens: Positive = Field(default=64, description="Longest answer, in tokens.")
    repeats: Annotated[int, Field(ge=1, le=100)] = Field(
        default=2, description="How often each question is asked, to see whether its answer repeats."
    )
    prompts: list[SmokePrompt] = Field(min_length=1, description="Questions, asked one at a time.")
    continuations: StudyPath | None = Field(
        default=None,
        description="A JSONL file of fixed continuations, whose log probabilities tell backends apart.",
    )
    speed_only: bool = Field(
        default=False,
        description="Answers are recorded, never judged, and everything measured is marked so: for weights "
        "that mean nothing (`load-format: dummy`).",
    )

    @field_validator("continuations")
    @classmethod
    def _can_be_read(cls, file: Path | None, info: ValidationInfo) -> Path | None:
        if file is not None:
            read_continuations(check_file(file, info), as_shown(file, info))
        return file

    @model_validator(mode="after")
    def _asks_once(self) -> Smoke:
        seen: dict[str, int] = {}
        for index, prompt in enumerate(self.prompts):
            if prompt.ask in seen:
                raise refusal(f"asks the same as prompt {seen[prompt.ask]}", "prompts", index)
            seen[prompt.ask] = index
        return self


class Rounds(Strict):
    """How often a configuration is relaunched."""

    min: Annotated[int, Field(ge=1, le=100)] = Field(
        default=3, description="Rounds before anything is decided."
    )
    max: Annotated[int, Field(ge=1, le=100)] = Field(
        default=10, description="Rounds after which measuring stops."
    )

    @model_validator(mode="after")
    def _min_below_max(self) -> Rounds:
        if self.min > self.max:
            raise refusal(f"min {self.min} is above max {self.max}")
        return self


class Budget(Strict):
    """What a study may spend."""

    gpu_hours: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        description="GPU-hours of all phases together: a race ends before a round that would exceed them."
    )


class Hypothesis(Strict):
    """A statement on two configurations of one phase, which the decision supports, refutes or leaves open."""

    a: Line = Field(description="Backend or speculative configuration that the statement is about.")
    verdict: Literal["faster", "slower", "equivalent"] = Field(description="What it is said to be.")
    b: Line = Field(description="What it is compared with; none is the base without speculation.")


class Decision(Strict):
    """What decides, and how sure to be."""

    metric: Metric = Field(description="What is compared.")
    margin: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=0.05, description="Relative difference that does not matter: within it, two are equivalent."
    )
    confidence: Annotated[float, Field(gt=0.5, lt=1)] = Field(
        default=0.95, description="Confidence of every interval and verdict."
    )
    rounds: Rounds = Field(default_factory=Rounds, description="Relaunches of each configuration.")
    budget: Budget | None = Field(
        default=None, description="What may be spent; nothing stops at it if absent."
    )
    reference: str | None = Field(
        default=None,
        description="Configuration that the others' answers are held against. "
        "Default: the first by name that works.",
    )
    agreement_bound: Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)] = Field(
        default=0.25,
        description="Mean distance of log probabilities from the reference's, in nats, that is no fault.",
    )
    hypotheses: list[Hypothesis] = Field(
        default_factory=list,
        description="Statements to be held against the data, beside those that every study is asked about.",
    )


class Hosts(Strict):
    """What one server needs of a host."""

    gpus: Annotated[int, Field(ge=0, le=1024)] = Field(description="GPUs one server uses; 0 for the CPU.")
    launch_timeout_seconds: Seconds = Field(
        default=1800.0, description="Longest launch of a server that lives."
    )
    slot_wait_seconds: Seconds = Field(
        default=3600.0, description="Longest wait for GPUs in use by another run."
    )
    numa: bool = Field(
        default=False,
        description="Bind each server to the NUMA nodes of its GPUs, processors and memory, and take GPUs of "
        "one node where one has enough. Where the host tells no nodes, a line says so.",
    )

    @model_validator(mode="after")
    def _binds_gpus(self) -> Hosts:
        if self.numa and not self.gpus:
            raise refusal("binds a server to its GPUs' nodes; with gpus: 0 it has none", "numa")
        return self

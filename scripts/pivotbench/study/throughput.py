"""What a study sends to its servers, and how long and how often it measures."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PrivateAttr,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from pivotbench.prompt_files import most_tokens, read_prompts
from pivotbench.study.fields import (
    Concurrencies,
    Seconds,
    Strict,
    StudyPath,
    as_shown,
    check_file,
    check_name,
    refusal,
)

# More than any context holds, and than a machine has patience for.
MOST_TOKENS = 10_000_000
MOST_REQUESTS = 1_000_000
LONGEST_RUN_SECONDS = 86_400

_LENGTH = {"type": "integer", "minimum": 1, "maximum": MOST_TOKENS}


def _one_or_more(value: Any) -> Any:
    return [value] if type(value) is int else value


def _ascending(values: list[float]) -> list[float]:
    if len(set(values)) != len(values):
        raise refusal("holds a value twice")
    return sorted(values)


Rates = Annotated[
    list[Annotated[float, Field(gt=0, le=1e5, allow_inf_nan=False)]],
    Field(min_length=1),
    AfterValidator(_ascending),
]
Lengths = Annotated[
    list[Annotated[int, Field(ge=1, le=MOST_TOKENS)]],
    BeforeValidator(_one_or_more),
    Field(min_length=1),
    WithJsonSchema({"anyOf": [_LENGTH, {"type": "array", "items": _LENGTH, "minItems": 1}]}),
]


class Workload(Strict):
    """What is sent to the server while it is measured."""

    kind: Literal["text", "synthetic"] = Field(
        description="text: prompts from a file. synthetic: random tokens, which cannot judge speculation."
    )
    prompts: StudyPath | None = Field(
        default=None,
        description="For kind text: a JSONL file of prompts, relative to the study file.",
    )
    prompt_tokens: Lengths | None = Field(
        default=None,
        description="For kind synthetic: length of each random prompt, in tokens; of a list, each in turn.",
    )
    shared_prefix: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = Field(
        default=0.0,
        description="For kind synthetic: share of each prompt, from its begin, that all prompts of a run "
        "have in common, so that a prefix cache can answer it.",
    )
    output_tokens: Annotated[int, Field(ge=2, le=MOST_TOKENS)] = Field(
        description="Longest answer, in tokens; at least 2."
    )
    stop: Literal["length", "natural"] = Field(
        default="length",
        description="Where an answer ends. length: at output_tokens, be it beyond the model's own end, so "
        "that every configuration writes equally much. natural: where the model ends it, at output_tokens "
        "at the latest, so that acceptance of drafts is that of real answers; for kind text.",
    )
    concurrency: Concurrencies = Field(
        default_factory=list,
        description="Closed loop: numbers of requests in flight, each measured on its own.",
    )
    rate: Rates = Field(
        default_factory=list,
        description="Open loop: requests a second, each measured on its own. Arrivals are Poisson and the "
        "same for every configuration; latency runs from the time a request was meant to be sent. "
        "Give concurrency, rate or both.",
    )
    _most_text_tokens: int = PrivateAttr(default=0)

    @property
    def most_prompt_tokens(self) -> int:
        """The tokens of the longest prompt; of texts, which only an engine counts, a bound of them."""
        return max(self.prompt_tokens or [self._most_text_tokens])

    @model_validator(mode="after")
    def _has_a_pace(self) -> Workload:
        if not self.concurrency and not self.rate:
            raise refusal("give concurrency, rate or both")
        return self

    @model_validator(mode="after")
    def _fits_its_kind(self, info: ValidationInfo) -> Workload:
        if self.kind == "text":
            if self.prompts is None:
                raise refusal("kind text needs prompts, the path of a JSONL file")
            if self.prompt_tokens is not None:
                raise refusal("belongs to kind synthetic; kind text takes prompts", "prompt_tokens")
            if self.shared_prefix:
                raise refusal("belongs to kind synthetic; kind text takes prompts", "shared_prefix")
            check_file(self.prompts, info, "prompts")
            shown = as_shown(self.prompts, info)
            prompts = read_prompts(self.prompts, shown, conversations=not self.rate)
            self._most_text_tokens = max(most_tokens(prompt, self.output_tokens) for prompt in prompts)
        else:
            if self.prompt_tokens is None:
                raise refusal("kind synthetic needs prompt_tokens")
            if self.prompts is not None:
                raise refusal("belongs to kind text; kind synthetic takes prompt_tokens", "prompts")
            if self.stop != "length":
                raise refusal("random tokens have no natural end; kind synthetic stops at length", "stop")
        return self


class Throughput(Strict):
    """How speed is measured, in every round, on every workload, at every concurrency and rate."""

    endpoint: Literal["chat", "completions", "native"] | None = Field(
        default=None,
        description="Where requests go: chat is /v1/chat/completions, completions is /v1/completions "
        "(a conversation as one text, without a chat template), native is SGLang's /generate. "
        "Default: native for sglang, chat for others.",
    )
    seconds: Seconds = Field(default=30.0, description="Measured time, at least, after the warm-up.")
    windows: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=5, description="Samples the measured time is cut into."
    )
    min_requests: Annotated[int, Field(ge=1, le=MOST_REQUESTS)] = Field(
        default=8, description="Completed requests, at least."
    )
    workloads: dict[str, Workload] = Field(min_length=1, description="Workloads by name.")

    @field_validator("workloads")
    @classmethod
    def _names_are_usable(cls, workloads: dict[str, Workload]) -> dict[str, Workload]:
        for name in workloads:
            check_name(name, name)
        return workloads

    @model_validator(mode="after")
    def _rates_end(self) -> Throughput:
        for name, workload in self.workloads.items():
            for rate in workload.rate:
                seconds = self.min_requests / rate
                if seconds > LONGEST_RUN_SECONDS:
                    message = f"min_requests {self.min_requests} at {rate:g} a second take {seconds:,.0f} s"
                    raise refusal(f"{message}; a day at most", "workloads", name, "rate")
        return self

"""The shape of what decision.json says of what is left to gain: the memory roofline, and the next levers."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class LimitWorkloadPart(_Part):
    """One workload of the metric against the roofline."""

    workload: str
    concurrency: int
    measured_tok_s: float
    roofline_tok_s: float
    share: float = Field(description="measured over roofline")
    context_tokens: float = Field(description="prompt and half of the answer, mean of the requests")
    bytes_per_pass: float = Field(description="weights and cache that a pass reads, all GPUs together")
    cache_bytes_per_pass: float = Field(description="of these, what is read of the requests' own")
    tokens_per_pass: float = Field(description="acceptance length; 1 without speculation")


class LimitPart(_Part):
    """How far the winner is from what memory bandwidth allows; null where model or GPU are not known."""

    configuration: str | None
    gpu: str | None
    gpus: int | None = Field(description="how many share the model; their bandwidth adds up")
    bandwidth_gb_s: float | None = Field(description="the maker's peak for one GPU")
    source: str | None
    measured_tok_s: float | None = Field(description="mean over the metric's workloads, by their weights")
    roofline_tok_s: float | None = Field(description="no faster by memory bandwidth; prefill is left out")
    share: float | None = Field(description="measured over roofline")
    by_workload: list[LimitWorkloadPart]
    reason: str | None = Field(description="why the figures are null")


class LeverPart(_Part):
    """What to try next: why, how (a piece of the study file), and which result would refute it."""

    lever: str
    because: str
    snippet: str
    refuted_by: str

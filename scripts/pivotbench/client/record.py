"""What is kept of a request: one row of requests.parquet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pivotbench.client.dialects import Chunk

# Where an answer ends: at the length asked for, or where the model ends it.
Stop = Literal["length", "natural"]
RequestStatus = Literal["ok", "failed", "short", "timeout", "cut"]


@dataclass(frozen=True)
class Identity:
    """Which request of which run this is; columns of its record.

    ``intended_seconds`` is when an open loop's schedule sends it: its latencies run from there.
    """

    workload: str
    kind: str
    concurrency: int | None
    index: int
    prompt_id: str
    rate_per_second: float | None = None
    turn: int = 0
    intended_seconds: float | None = None
    stop: Stop = "length"


@dataclass(frozen=True)
class RequestRecord:
    """One row of requests.parquet. Times are seconds from the run's start on a monotonic clock: a request's
    when it began to leave on an open connection, a chunk's when its last byte reached this machine.

    ``status``: ok; failed (refused, broken, an HTTP or a reported error); short (ended without a finish
    reason, without the stream's end mark, or with fewer tokens than were asked for where ``stop`` is length);
    timeout; cut (our own end of the measured time). ttft, tpot and e2e are null unless ok, so that a broken
    answer is never a fast one. ``measured`` is true for a request of the measured series that ended within
    the measured time. ``chunk_tokens`` sum to ``output_tokens``, the server's count, where it is known. ttft
    and e2e run from ``intended_seconds`` where there is one (open loop), else from ``sent_seconds``.
    ``prompt_ids_sent`` is the length of a prompt that was sent as token ids.
    """

    workload: str
    kind: str
    concurrency: int | None
    index: int
    measured: bool
    prompt_id: str
    status: RequestStatus
    finish_reason: str | None
    error: str | None
    prompt_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    stream_tokens: int
    sent_seconds: float
    first_token_seconds: float | None
    end_seconds: float
    ttft_seconds: float | None
    tpot_seconds: float | None
    e2e_seconds: float | None
    chunk_seconds: list[float]
    chunk_tokens: list[int]
    draft_proposed: int | None
    draft_accepted: int | None
    verify_steps: int | None
    accept_histogram: list[int] | None
    text: str
    rate_per_second: float | None = None
    turn: int = 0
    intended_seconds: float | None = None
    prompt_ids_sent: int | None = None
    stop: Stop = "length"


def whole_text(chunks: list[Chunk]) -> str:
    """Return the chunks' text as one; see mended."""
    return mended("".join(chunk.text for chunk in chunks))


def mended(text: str) -> str:
    """Return a text that UTF-8 can hold: halves of a surrogate pair are joined, lone ones are U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

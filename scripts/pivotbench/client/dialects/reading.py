"""What every reader of a streamed answer gives: chunks as they arrive, and a tally at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from pivotbench.engines.base import Alternative

T = TypeVar("T")

# No answer is so long; a larger count would not fit the columns of requests.parquet.
MOST_TOKENS = 2**31


class Chunk(NamedTuple):
    """A piece of the answer: when it arrived, its text (reasoning included), the tokens it stands for."""

    seconds: float
    text: str
    tokens: int


@dataclass
class Tally:
    """The server's own account of one answer; None is "not reported", which is neither 0 nor 1."""

    output_tokens: int | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    draft_proposed: int | None = None
    draft_accepted: int | None = None
    verify_steps: int | None = None
    accept_histogram: list[int] | None = None
    finish_reason: str | None = None
    token_ids: list[int] | None = None
    logprobs: list[float | None] | None = None
    alternatives: list[list[Alternative]] | None = None


class AnswerError(Exception):
    """A stream that began well holds an error the server reports, or an event that cannot be read."""


# What reading an event of another form than expected may raise.
UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


class Reader(Protocol):
    """Reads one answer's events: a token costs no more than its text and its place in the count.

    ``counts`` tells whether the stream carries a running token count, ``finished`` whether a finish reason
    came.
    """

    counts: bool
    finished: bool

    @property
    def tally(self) -> Tally:
        """The server's account as of the newest event. Raises one of UNREADABLE."""
        ...

    def read(self, event: dict[str, Any], seconds: float) -> Chunk | None:
        """Return the chunk in one event, if it carries text or tokens; raises as read_json."""
        ...

    def read_json(self, data: bytes, seconds: float) -> Chunk | None:
        """Read an event as it came. Raises AnswerError, and one of UNREADABLE for what is no such event."""
        ...


def spread_tokens(chunks: Sequence[Chunk], total: int, *, counts: bool) -> list[int]:
    """Return the tokens of each chunk so that they sum to the server's final count.

    With a running count in the stream a remainder came after the last counted chunk and is added there.
    Without one every chunk with text was taken for one token: a surplus is shared out by characters (largest
    remainder), for a longer piece holds more tokens; where there are more chunks than tokens, the
    shortest pieces get none.
    """
    tokens = [chunk.tokens for chunk in chunks]
    surplus = total - sum(tokens)
    if not chunks or surplus == 0:
        return tokens
    if surplus > 0 and counts:
        return [*tokens[:-1], tokens[-1] + surplus]
    by_length = sorted(range(len(chunks)), key=lambda i: len(chunks[i].text))
    if surplus < 0:
        for i in by_length:
            taken = min(tokens[i], -surplus)
            tokens[i] -= taken
            surplus += taken
        return tokens
    characters = sum(len(chunk.text) for chunk in chunks) or 1
    shares = [surplus * len(chunk.text) / characters for chunk in chunks]
    added = [int(share) for share in shares]
    for i in sorted(range(len(chunks)), key=lambda i: added[i] - shares[i])[: surplus - sum(added)]:
        added[i] += 1
    return [own + more for own, more in zip(tokens, added, strict=True)]


def raise_reported(event: dict[str, Any]) -> None:
    """Raise AnswerError with what an event says under `error`, if anything."""
    error = event.get("error")
    if error:
        said = error.get("message", error) if isinstance(error, dict) else error
        raise AnswerError(f"reported in the stream: {said}")


def read_speculation(tally: Tally, meta: dict[str, Any]) -> None:
    """Set what SGLang's `meta_info` counts of drafts; it renamed these over its versions, newest asked first.

    What it does not hold stays as it is.
    """
    tally.verify_steps = first(meta, "spec_verify_ct", default=tally.verify_steps)
    tally.draft_proposed = first(
        meta,
        "spec_num_proposed_drafts",
        "spec_proposed_drafts",
        "spec_draft_token_num",
        default=tally.draft_proposed,
    )
    tally.draft_accepted = first(
        meta,
        "spec_num_correct_drafts",
        "spec_accepted_drafts",
        "spec_accept_token_num",
        default=tally.draft_accepted,
    )
    histogram = meta.get("spec_correct_drafts_histogram") or meta.get("spec_accept_histogram")
    if isinstance(histogram, list):
        tally.accept_histogram = [count(steps) for steps in histogram]


def first(data: dict[str, Any], *names: str, default: int | None = None) -> int | None:
    """Return the first count there is under one of the names, else the default."""
    return next((count(data[name]) for name in names if data.get(name) is not None), default)


def count(value: Any) -> int:
    """Return a count of tokens or drafts. Raises one of UNREADABLE for what is none."""
    number = int(value)
    if abs(number) > MOST_TOKENS:
        raise ValueError(f"{value} is no count of tokens")
    return number


def told(value: Any, kind: type[T]) -> T | None:
    """Return a value that a server gives as null or as one of this kind. Raises TypeError for another."""
    if value is None or isinstance(value, kind):
        return value
    raise TypeError(f"{value!r} is no {kind.__name__}")


def logprob(value: Any) -> float | None:
    """Return a log probability; null stands for NaN. Raises one of UNREADABLE for what is no number."""
    return float(value) if isinstance(value, int) else told(value, float)


def token_ids(ids: list[Any]) -> list[int]:
    """Return token ids. Raises TypeError where one is no number."""
    if not all(isinstance(token, int) for token in ids):
        raise TypeError(f"{ids} are no token ids")
    return ids

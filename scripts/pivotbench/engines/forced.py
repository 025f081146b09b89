"""Log probabilities of a text that the server is made to follow token by token (teacher forcing)."""

from __future__ import annotations

import http.client
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pivotbench.engines.control import ask
from pivotbench.pace import STALL_SECONDS

# Tokens of one continuation that are looked at, at most.
LONGEST_TOKENS = 16


@dataclass(frozen=True)
class Forced:
    """The log probabilities, in nats, that a server gives the tokens of a continuation.

    None in place of one stands for what is not a number. At the places in ``at_most`` the token was not among
    those the server listed: it is at most as likely as the value there. ``logprobs`` is None where the server
    gave none, and ``why`` says so.
    """

    logprobs: tuple[float | None, ...] | None
    at_most: tuple[int, ...] = ()
    why: str | None = None


class NoAnswer(Exception):
    """The server gave no answer that can be read; the text says what came instead."""


def asked(url: str, body: Any) -> Any:
    """Return the JSON answer to a POST; raises NoAnswer."""
    try:
        status, answer = ask(url, body, timeout_seconds=STALL_SECONDS)
    except (OSError, http.client.HTTPException) as error:
        raise NoAnswer(f"{type(error).__name__}: {error}") from None
    if status != 200 or not isinstance(answer, dict):
        raise NoAnswer(f"HTTP {status}: {str(answer)[:200]}")
    return answer


def number(value: Any) -> float | None:
    """Return a log probability as a server told it; null stands for NaN. Raises NoAnswer for others."""
    if value is None:
        return None
    if isinstance(value, (int, float)):
        return float(value)
    raise NoAnswer(f"the server's answer cannot be read: {str(value)[:50]!r} is no log probability")


def unreadable(error: Exception) -> Forced:
    """Return what comes of an answer of another form than expected."""
    return Forced(None, why=f"the server's answer cannot be read: {type(error).__name__}: {error}")


def boundary(prompt: Sequence[int], whole: Sequence[int]) -> int:
    """Return where the continuation begins in the tokens of prompt and continuation together.

    A tokenizer may join the end of the prompt with what follows: then it begins at the joined token. The
    first token of all is never part of it, for nothing goes before it.
    """
    shared = 0
    for one, other in zip(prompt, whole, strict=False):
        if one != other:
            break
        shared += 1
    return max(1, min(shared, len(whole)))

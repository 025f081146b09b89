"""OpenAI's two dialects, as llama.cpp and SGLang serve them; llama.cpp adds `timings`."""

from __future__ import annotations

from typing import Any

from pivotbench.client.dialects.asks import TOP_LOGPROBS, Ask, plain_text
from pivotbench.client.dialects.reading import (
    Chunk,
    Tally,
    count,
    first,
    logprob,
    raise_reported,
    read_speculation,
    token_ids,
    told,
)
from pivotbench.client.json_bytes import decode
from pivotbench.engines.base import Alternative


def chat_body(ask: Ask, model_name: str) -> dict[str, Any]:
    """Return the body of POST /v1/chat/completions."""
    body = _common(ask, model_name) | {"messages": [dict(message) for message in ask.messages]}
    return body | ({"logprobs": True, "top_logprobs": TOP_LOGPROBS} if ask.token_ids else {})


def completions_body(ask: Ask, model_name: str) -> dict[str, Any]:
    """Return the body of POST /v1/completions: the ids where there are some, else one plain text."""
    prompt = plain_text(ask) if ask.prompt_ids is None else list(ask.prompt_ids)
    body = _common(ask, model_name) | {"prompt": prompt}
    return body | ({"logprobs": 1} if ask.token_ids else {})


def _common(ask: Ask, model_name: str) -> dict[str, Any]:
    """Both kinds of server skip what they do not know, so each one's keys go out to both.

    A running count in every chunk is `timings_per_token` to llama.cpp, `continuous_usage_stats` to SGLang.
    """
    return {
        "model": model_name,
        "max_tokens": ask.max_tokens,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        "timings_per_token": True,
        "ignore_eos": ask.ignore_eos,
    }


class OpenAIReader:
    """Events of both paths; SGLang may add `meta_info` to a choice."""

    def __init__(self) -> None:
        self.counts = False
        self.finished = False
        self._tally = Tally()
        self._counted = 0
        self._usage: dict[str, Any] = {}
        self._timings: dict[str, Any] = {}
        self._meta: dict[str, Any] = {}

    def read(self, event: dict[str, Any], seconds: float) -> Chunk | None:
        """Return the chunk in one event, if it carries text or tokens; raises as read_json."""
        get = event.get
        if get("error"):
            raise_reported(event)
        running = None
        if usage := get("usage"):
            self._usage.update(usage)
            running = usage.get("completion_tokens")
        if timings := get("timings"):
            self._timings.update(timings)
            running = timings.get("predicted_n", running)
        if running is not None:
            self._tally.output_tokens = running = count(running)
        choices = get("choices")
        if not choices:
            return None
        choice = choices[0]
        get = choice.get
        if get("finish_reason"):
            self.finished, self._tally.finish_reason = True, str(choice["finish_reason"])
        if meta := get("meta_info"):
            self._meta.update(meta)
        if logprobs := get("logprobs"):
            self._read_logprobs(logprobs)
        text = _text(choice)
        if running is None:
            tokens = 1 if text and not self.counts else 0
        else:
            self.counts = True
            tokens = max(0, running - self._counted)
        self._counted += tokens
        return Chunk(seconds, text, tokens) if text or tokens else None

    def read_json(self, data: bytes, seconds: float) -> Chunk | None:
        """Read an event as it came. Raises AnswerError, or one of UNREADABLE."""
        return self.read(decode(data), seconds)

    @property
    def tally(self) -> Tally:
        """The server's account as of the newest event. Raises one of UNREADABLE."""
        tally, usage, timings = self._tally, self._usage, self._timings
        read_speculation(tally, self._meta)
        details = usage.get("prompt_tokens_details") or {}
        for key, value in (
            ("prompt_tokens", first(usage, "prompt_tokens")),
            ("cached_tokens", first(details, "cached_tokens")),
            ("cached_tokens", first(timings, "cache_n")),
            ("draft_proposed", first(timings, "draft_n")),
            ("draft_accepted", first(timings, "draft_n_accepted")),
        ):
            if value is not None:
                setattr(tally, key, value)
        return tally

    def _read_logprobs(self, logprobs: dict[str, Any]) -> None:
        """Read one chunk's: entries under `content`, or /v1/completions' list `token_logprobs`.

        An entry may lack its id or its logprob: the answer has then fewer of them than tokens.
        """
        entries = logprobs.get("content") or []
        ids = token_ids([entry["id"] for entry in entries if "id" in entry])
        values = [entry["logprob"] for entry in entries if "logprob" in entry]
        values = [logprob(value) for value in values or logprobs.get("token_logprobs") or []]
        if ids:
            self._tally.token_ids = (self._tally.token_ids or []) + ids
        if values:
            self._tally.logprobs = (self._tally.logprobs or []) + values
        alternatives = [[_alternative(top) for top in entry.get("top_logprobs") or []] for entry in entries]
        if any(alternatives):
            self._tally.alternatives = (self._tally.alternatives or []) + alternatives


def _alternative(top: dict[str, Any]) -> Alternative:
    return told(top.get("id"), int), told(top.get("token"), str), logprob(top.get("logprob"))


def _text(choice: dict[str, Any]) -> str:
    """Return what one choice adds; reasoning text goes by either of two names and comes first."""
    delta = choice.get("delta")
    if delta:
        text = delta.get("content") or ""
        if reasoning := delta.get("reasoning_content") or delta.get("reasoning"):
            text = reasoning + text
    else:
        text = choice.get("text") or ""
    if not isinstance(text, str):
        raise TypeError(f"{text!r} is no text")
    return text

"""OpenAI's two dialects, as llama.cpp and SGLang serve them; llama.cpp adds `timings`."""

from __future__ import annotations

from typing import Any

from pivotbench.client.dialects.asks import TOP_LOGPROBS, Ask, plain_text
from pivotbench.client.dialects.reading import Chunk, Tally, first, raise_reported, read_speculation


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
        self.tally = Tally()
        self.counts = False
        self._counted = 0

    def read(self, event: dict[str, Any], seconds: float) -> Chunk | None:
        """Return the chunk in one event, if it carries text or tokens. Raises AnswerError."""
        raise_reported(event)
        usage, timings = event.get("usage") or {}, event.get("timings") or {}
        self._read_usage(usage, timings)
        choices = event.get("choices") or []
        if not choices:
            return None
        choice = choices[0]
        if choice.get("finish_reason"):
            self.tally.finish_reason = str(choice["finish_reason"])
        read_speculation(self.tally, choice.get("meta_info") or {})
        self._read_logprobs(choice.get("logprobs") or {})
        text = _text(choice)
        running = first(timings, "predicted_n")
        running = first(usage, "completion_tokens") if running is None else running
        if running is None:
            tokens = 1 if text and not self.counts else 0
        else:
            self.counts = True
            tokens = max(0, running - self._counted)
        self._counted += tokens
        return Chunk(seconds, text, tokens) if text or tokens else None

    def _read_usage(self, usage: dict[str, Any], timings: dict[str, Any]) -> None:
        tally = self.tally
        details = usage.get("prompt_tokens_details") or {}
        for key, value in (
            ("output_tokens", first(usage, "completion_tokens")),
            ("prompt_tokens", first(usage, "prompt_tokens")),
            ("cached_tokens", first(details, "cached_tokens")),
            ("output_tokens", first(timings, "predicted_n")),
            ("cached_tokens", first(timings, "cache_n")),
            ("draft_proposed", first(timings, "draft_n")),
            ("draft_accepted", first(timings, "draft_n_accepted")),
        ):
            if value is not None:
                setattr(tally, key, value)

    def _read_logprobs(self, logprobs: dict[str, Any]) -> None:
        """Read one chunk's: entries under `content`, or /v1/completions' list `token_logprobs`."""
        entries = logprobs.get("content") or []
        ids = [entry["id"] for entry in entries if "id" in entry]
        values = [entry["logprob"] for entry in entries] or logprobs.get("token_logprobs") or []
        if ids:
            self.tally.token_ids = (self.tally.token_ids or []) + ids
        if values:
            self.tally.logprobs = (self.tally.logprobs or []) + values
        alternatives = [
            [(top.get("id"), top.get("token"), top.get("logprob")) for top in entry.get("top_logprobs") or []]
            for entry in entries
        ]
        if any(alternatives):
            self.tally.alternatives = (self.tally.alternatives or []) + alternatives


def _text(choice: dict[str, Any]) -> str:
    """Return what one choice adds; reasoning text goes by either of two names and comes first."""
    delta = choice.get("delta") or {}
    reasoning = delta.get("reasoning_content") or delta.get("reasoning") or ""
    return reasoning + (delta.get("content") or choice.get("text") or "")

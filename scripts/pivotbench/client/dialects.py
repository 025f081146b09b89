"""What each kind of streaming answer says, in one form: chunks as they arrive, and a tally at the end.

openai-chat      POST /v1/chat/completions, as llama.cpp and SGLang serve it.
sglang-generate  POST /generate, SGLang's own; text and counts are cumulative. It applies no chat template,
                 so the messages' tokens are asked for first (POST /v1/tokenize) and sent in their place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pivotbench.engines.base import Dialect

Message = Mapping[str, str]


@dataclass(frozen=True)
class Ask:
    """What one request asks for. Decoding is greedy (temperature 0).

    ``ignore_eos`` makes the answer exactly ``max_tokens`` long; ``token_ids`` asks for them where the
    dialect can give them. ``prompt_ids`` are the messages in the model's chat form, where the dialect
    needs them.
    """

    messages: tuple[Message, ...]
    max_tokens: int
    ignore_eos: bool
    token_ids: bool = False
    prompt_ids: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
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


class AnswerError(Exception):
    """The server reported an error inside a stream that began well."""


class Reader(Protocol):
    """Reads one answer's events. ``counts`` tells whether the stream carries a running token count."""

    tally: Tally
    counts: bool

    def read(self, event: dict[str, Any], seconds: float) -> Chunk | None:
        """Return the chunk in one event, if it carries text or tokens. Raises AnswerError."""
        ...


def path_of(dialect: Dialect) -> str:
    """Return the path that answers this dialect."""
    return "/v1/chat/completions" if dialect == "openai-chat" else "/generate"


def chat_form_path(dialect: Dialect) -> str | None:
    """Return the path that puts messages into the model's chat form; None where the answer's path does so."""
    return None if dialect == "openai-chat" else "/v1/tokenize"


def chat_form_body(ask: Ask, model_name: str) -> dict[str, Any]:
    """Return the JSON body that asks for the messages' tokens in the model's chat form."""
    return {"model": model_name, "messages": [dict(message) for message in ask.messages]}


def chat_form(answer: Any) -> tuple[int, ...] | None:
    """Return the tokens in such an answer, None where it holds none."""
    tokens = answer.get("tokens") if isinstance(answer, dict) else None
    return tuple(tokens) if tokens and isinstance(tokens, list) else None


def body_of(dialect: Dialect, ask: Ask, model_name: str) -> dict[str, Any]:
    """Return the JSON body of one streamed request.

    Both kinds of server skip what they do not know, so llama.cpp's keys (`ignore_eos`,
    `timings_per_token`: a running count in every chunk) and SGLang's (`continuous_usage_stats`: the same)
    go out together. /generate gets the messages' tokens in chat form, or their contents as one text where
    the model has no chat form.
    """
    if dialect == "openai-chat":
        body: dict[str, Any] = {
            "model": model_name,
            "messages": [dict(message) for message in ask.messages],
            "max_tokens": ask.max_tokens,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True, "continuous_usage_stats": True},
            "timings_per_token": True,
            "ignore_eos": ask.ignore_eos,
        }
        return body | ({"logprobs": True, "top_logprobs": 1} if ask.token_ids else {})
    prompt: dict[str, Any] = (
        {"text": "\n\n".join(message["content"] for message in ask.messages)}
        if ask.prompt_ids is None
        else {"input_ids": list(ask.prompt_ids)}
    )
    return prompt | {
        "sampling_params": {
            "max_new_tokens": ask.max_tokens,
            "temperature": 0,
            "ignore_eos": ask.ignore_eos,
        },
        "stream": True,
    }


def reader_of(dialect: Dialect) -> Reader:
    """Return a fresh reader for one answer."""
    return OpenAIChatReader() if dialect == "openai-chat" else SGLangGenerateReader()


class OpenAIChatReader:
    """Events of /v1/chat/completions; llama.cpp adds `timings`, SGLang may add `meta_info`."""

    def __init__(self) -> None:
        self.tally = Tally()
        self.counts = False
        self._counted = 0

    def read(self, event: dict[str, Any], seconds: float) -> Chunk | None:
        """Return the chunk in one event, if it carries text or tokens. Raises AnswerError."""
        _raise_reported(event)
        usage, timings = event.get("usage") or {}, event.get("timings") or {}
        self._read_usage(usage, timings)
        choices = event.get("choices") or []
        if not choices:
            return None
        choice = choices[0]
        if choice.get("finish_reason"):
            self.tally.finish_reason = str(choice["finish_reason"])
        _read_speculation(self.tally, choice.get("meta_info") or {})
        self._read_token_ids((choice.get("logprobs") or {}).get("content") or [])
        delta = choice.get("delta") or {}
        text = (delta.get("reasoning_content") or "") + (delta.get("content") or "")
        running = _first(timings, "predicted_n")
        running = _first(usage, "completion_tokens") if running is None else running
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
            ("output_tokens", _first(usage, "completion_tokens")),
            ("prompt_tokens", _first(usage, "prompt_tokens")),
            ("cached_tokens", _first(details, "cached_tokens")),
            ("output_tokens", _first(timings, "predicted_n")),
            ("cached_tokens", _first(timings, "cache_n")),
            ("draft_proposed", _first(timings, "draft_n")),
            ("draft_accepted", _first(timings, "draft_n_accepted")),
        ):
            if value is not None:
                setattr(tally, key, value)

    def _read_token_ids(self, logprobs: list[dict[str, Any]]) -> None:
        ids = [entry["id"] for entry in logprobs if "id" in entry]
        if ids:
            self.tally.token_ids = (self.tally.token_ids or []) + ids


class SGLangGenerateReader:
    """Events of /generate: `text` is cumulative, or incremental where the server was started so."""

    def __init__(self) -> None:
        self.tally = Tally()
        self.counts = False
        self._text = ""
        self._counted = 0

    def read(self, event: dict[str, Any], seconds: float) -> Chunk | None:
        """Return the chunk in one event, if it carries text or tokens. Raises AnswerError."""
        _raise_reported(event)
        meta = event.get("meta_info") or {}
        tally = self.tally
        finish = meta.get("finish_reason")
        if finish:
            tally.finish_reason = str(finish.get("type")) if isinstance(finish, dict) else str(finish)
            if tally.finish_reason == "abort":
                raise AnswerError(f"aborted: {finish.get('message', '') if isinstance(finish, dict) else ''}")
        for key, name in (
            ("prompt_tokens",) * 2,
            ("cached_tokens",) * 2,
            ("output_tokens", "completion_tokens"),
        ):
            if (value := _first(meta, name)) is not None:
                setattr(tally, key, value)
        _read_speculation(tally, meta)
        if isinstance(event.get("output_ids"), list):
            tally.token_ids = event["output_ids"]
        text = self._added(event.get("text") or "")
        running = _first(meta, "completion_tokens")
        self.counts = self.counts or running is not None
        tokens = max(0, running - self._counted) if running is not None else int(bool(text))
        self._counted += tokens
        return Chunk(seconds, text, tokens) if text or tokens else None

    def _added(self, text: str) -> str:
        if text.startswith(self._text):
            added, self._text = text[len(self._text) :], text
            return added
        # A cumulative text repeats what came before, save a few characters at its end that were
        # not final; an incremental one is short and starts elsewhere.
        shared = next(
            (i for i, (a, b) in enumerate(zip(self._text, text, strict=False)) if a != b),
            min(len(self._text), len(text)),
        )
        if shared * 2 >= len(self._text):
            self._text = text
            return text[shared:]
        self._text += text
        return text


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


def _raise_reported(event: dict[str, Any]) -> None:
    error = event.get("error")
    if error:
        raise AnswerError(str(error.get("message", error)) if isinstance(error, dict) else str(error))


def _read_speculation(tally: Tally, meta: dict[str, Any]) -> None:
    """SGLang renamed these counts over its versions; the newest name is asked first."""
    tally.verify_steps = _first(meta, "spec_verify_ct", default=tally.verify_steps)
    tally.draft_proposed = _first(
        meta,
        "spec_num_proposed_drafts",
        "spec_proposed_drafts",
        "spec_draft_token_num",
        default=tally.draft_proposed,
    )
    tally.draft_accepted = _first(
        meta,
        "spec_num_correct_drafts",
        "spec_accepted_drafts",
        "spec_accept_token_num",
        default=tally.draft_accepted,
    )
    histogram = meta.get("spec_correct_drafts_histogram") or meta.get("spec_accept_histogram")
    if isinstance(histogram, list):
        tally.accept_histogram = [int(count) for count in histogram]


def _first(data: dict[str, Any], *names: str, default: int | None = None) -> int | None:
    return next((int(data[name]) for name in names if data.get(name) is not None), default)

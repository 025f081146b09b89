"""What each kind of streaming answer says, in one form.

openai-chat         POST /v1/chat/completions, as llama.cpp and SGLang serve it.
openai-completions  POST /v1/completions, as both serve it: one text or token ids, no chat template.
sglang-generate     POST /generate, SGLang's own; text and counts are cumulative. It applies no chat template,
                    so the messages' tokens are asked for first (POST /v1/tokenize) and sent in their place.
"""

from __future__ import annotations

from typing import Any

from pivotbench.client.dialects.asks import Ask, Message
from pivotbench.client.dialects.openai import OpenAIReader, chat_body, completions_body
from pivotbench.client.dialects.reading import (
    UNREADABLE,
    AnswerError,
    Chunk,
    Reader,
    Tally,
    spread_tokens,
)
from pivotbench.client.dialects.sglang import SGLangGenerateReader, generate_body
from pivotbench.engines.endpoints import Dialect

__all__ = [
    "UNREADABLE",
    "AnswerError",
    "Ask",
    "Chunk",
    "Message",
    "Reader",
    "Tally",
    "body_of",
    "chat_form",
    "chat_form_body",
    "chat_form_path",
    "path_of",
    "reader_of",
    "spread_tokens",
    "takes_ids",
]

_PATHS: dict[Dialect, str] = {
    "openai-chat": "/v1/chat/completions",
    "openai-completions": "/v1/completions",
    "sglang-generate": "/generate",
}


def path_of(dialect: Dialect) -> str:
    """Return the path that answers this dialect."""
    return _PATHS[dialect]


def takes_ids(dialect: Dialect) -> bool:
    """Return whether a prompt may be sent as token ids."""
    return dialect != "openai-chat"


def chat_form_path(dialect: Dialect) -> str | None:
    """Return the path that puts messages into the model's chat form; None where nothing is to be asked."""
    return "/v1/tokenize" if dialect == "sglang-generate" else None


def chat_form_body(ask: Ask, model_name: str) -> dict[str, Any]:
    """Return the JSON body that asks for the messages' tokens in the model's chat form."""
    return {"model": model_name, "messages": [dict(message) for message in ask.messages]}


def chat_form(answer: Any) -> tuple[int, ...] | None:
    """Return the tokens in such an answer, None where it holds none."""
    tokens = answer.get("tokens") if isinstance(answer, dict) else None
    return tuple(tokens) if tokens and isinstance(tokens, list) else None


def body_of(dialect: Dialect, ask: Ask, model_name: str) -> dict[str, Any]:
    """Return the JSON body of one streamed request."""
    if dialect == "sglang-generate":
        return generate_body(ask)
    return (chat_body if dialect == "openai-chat" else completions_body)(ask, model_name)


def reader_of(dialect: Dialect) -> Reader:
    """Return a fresh reader for one answer."""
    return SGLangGenerateReader() if dialect == "sglang-generate" else OpenAIReader()

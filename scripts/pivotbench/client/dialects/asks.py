"""What one request asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Message = Mapping[str, str]

# How many of the likeliest tokens an answer with token ids tells at each of its tokens.
TOP_LOGPROBS = 5


@dataclass(frozen=True)
class Ask:
    """What one request asks for. Decoding is greedy (temperature 0).

    ``ignore_eos`` makes the answer exactly ``max_tokens`` long; ``token_ids`` asks for them, for their
    logprobs and for the likeliest alternatives, where the dialect can give them. ``prompt_ids`` are sent in
    place of the messages: a synthetic prompt, or the messages in the model's chat form.
    """

    messages: tuple[Message, ...]
    max_tokens: int
    ignore_eos: bool
    token_ids: bool = False
    prompt_ids: tuple[int, ...] | None = None


def plain_text(ask: Ask) -> str:
    """Return the messages' contents as one text, for a path that knows no messages.

    An answer stands right behind its question, as the server itself wrote it there: so a prefix cache can
    answer a conversation's history.
    """
    text = ""
    for message in ask.messages:
        text += ("\n\n" if text and message["role"] != "assistant" else "") + message["content"]
    return text

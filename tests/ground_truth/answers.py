"""The bytes of an answer of known tokens, made before anyone asks: one HTTP chunk an event, as uvicorn sends.

Shapes by path: /generate (cumulative text), /v1/completions and /v1/chat/completions, each with a running
count of tokens in every event, as SGLang writes them.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

# Its two- and four-byte characters make any cut of the bytes likely to hit one.
TOKEN = " tök🙂n"

HEAD = (
    b"HTTP/1.1 200 OK\r\nServer: ground-truth\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
END = b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"


@cache
def events(path: str, tokens: int, tokens_per_chunk: int) -> tuple[bytes, ...]:
    """Return an answer's events in order; the last carries the finish reason, and END what follows it."""
    counts = [min(tokens, done + tokens_per_chunk) for done in range(0, tokens, tokens_per_chunk)]
    rendered, before = [], 0
    for count in counts:
        data = json.dumps(_event(path, before, count, count == tokens), ensure_ascii=False).encode()
        event = b"data: " + data + b"\n\n"
        rendered.append(b"%x\r\n%b\r\n" % (len(event), event))
        before = count
    return tuple(rendered)


def text(tokens: int) -> str:
    """Return the text of an answer of so many tokens."""
    return TOKEN * tokens


def _event(path: str, before: int, count: int, last: bool) -> dict[str, Any]:
    finish = "length" if last else None
    if path == "/generate":
        meta = {
            "id": "4f2b6c1e9a7d4b0c8e5f3a2d1c0b9a87",
            "finish_reason": {"type": "length", "length": count} if last else None,
            "prompt_tokens": 16,
            "weight_version": "default",
            "completion_tokens": count,
            "cached_tokens": 0,
        }
        return {"text": text(count), "output_ids": list(range(1000, 1000 + count)), "meta_info": meta}
    added = text(count - before)
    chat = path == "/v1/chat/completions"
    choice = {"delta": {"role": "assistant", "content": added}} if chat else {"text": added}
    return {
        "id": "4f2b6c1e9a7d4b0c8e5f3a2d1c0b9a87",
        "object": "chat.completion.chunk" if chat else "text_completion",
        "created": 1790000000,
        "model": "truth",
        "choices": [{"index": 0, **choice, "logprobs": None, "finish_reason": finish}],
        "usage": {"prompt_tokens": 16, "completion_tokens": count, "total_tokens": 16 + count},
    }

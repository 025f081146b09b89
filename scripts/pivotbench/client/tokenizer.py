"""The server's own tokenizer: what synthetic prompts are made of, and a count of tokens by text.

It is asked before and after runs, never during one. A server without it answers None everywhere.
"""

from __future__ import annotations

import asyncio
import http.client
from collections.abc import Sequence

from pivotbench.client.dialects import chat_form
from pivotbench.client.record import RequestRecord
from pivotbench.client.request import Target
from pivotbench.engines.control import ask
from pivotbench.workloads import WORDS, Vocabulary

# llama.cpp's path, then SGLang's; both skip keys they do not know.
PATHS = ("/tokenize", "/v1/tokenize")
TIMEOUT_SECONDS = 10.0
ANSWERS_COUNTED = 8


async def tokenize(target: Target, text: str, *, special: bool = False) -> tuple[int, ...] | None:
    """Return the text's token ids, None where the server does not tell.

    ``special`` adds what the model puts around every text, such as a token that begins it.
    """
    body = {
        "model": target.model_name,
        "content": text,
        "add_special": special,
        "prompt": text,
        "add_special_tokens": special,
    }
    for path in PATHS:
        try:
            status, answer = await asyncio.to_thread(
                ask, target.url.rstrip("/") + path, body, timeout_seconds=TIMEOUT_SECONDS
            )
        except (OSError, http.client.HTTPException):
            return None
        if status == 200 and (ids := chat_form(answer)):
            return ids if all(type(i) is int for i in ids) else None
    return None


async def vocabulary(target: Target) -> Vocabulary | None:
    """Return the ids that ordinary English words consist of, and those with which every text begins."""
    words = await tokenize(target, " " + WORDS)
    whole = await tokenize(target, " " + WORDS, special=True)
    if words is None or whole is None:
        return None
    begin = next((i for i in range(len(whole)) if whole[i : i + len(words)] == words), 0)
    return Vocabulary(tuple(dict.fromkeys(words)), whole[:begin])


async def count_by_text(target: Target, records: Sequence[RequestRecord]) -> dict[str, int] | None:
    """Return {answers, tokens, server}: a sample of answers, their tokens by text and by the server's count.

    The sample is ANSWERS_COUNTED measured answers at most, spread evenly over the run.
    """
    ok = [r for r in records if r.measured and r.status == "ok" and r.text and r.output_tokens is not None]
    sample = [ok[i * len(ok) // ANSWERS_COUNTED] for i in range(ANSWERS_COUNTED)] if ok else []
    sample = list({r.index: r for r in sample}.values())
    tokens = server = 0
    for record in sample:
        ids = await tokenize(target, record.text)
        if ids is None:
            return None
        tokens += len(ids)
        server += record.output_tokens or 0
    return {"answers": len(sample), "tokens": tokens, "server": server} if sample else None

"""In which of an engine's dialects this very server can be asked."""

from __future__ import annotations

import http.client
from collections.abc import Sequence

from pivotbench.client.dialects import Ask, chat_form_body, chat_form_path
from pivotbench.engines.control import ask
from pivotbench.engines.endpoints import Dialect

TIMEOUT_SECONDS = 10.0


def spoken(url: str, model_name: str, dialects: Sequence[Dialect]) -> tuple[Sequence[Dialect], str | None]:
    """Return the dialects without those whose chat form the server fails to tell, and which that were.

    A prompt in chat form is what its own dialect is asked with. SGLang 0.5.16 answers HTTP 500 where the
    tokenizer states no length: its own stand-in for one, 10^30, does not fit into its JSON. The last
    dialect is never left out, and a server that does not answer is found out by the requests that follow.
    """
    left, failed = list(dialects), []
    for dialect in dialects[:-1]:
        path = chat_form_path(dialect)
        if path is None:
            continue
        body = chat_form_body(Ask(({"role": "user", "content": "Hello"},), 1, ignore_eos=False), model_name)
        try:
            status, _ = ask(url.rstrip("/") + path, body, timeout_seconds=TIMEOUT_SECONDS)
        except (OSError, http.client.HTTPException):
            continue
        if status >= 500:
            left.remove(dialect)
            failed.append(f"{dialect}: {path} answers HTTP {status} to a chat, so {left[0]} is used instead")
    return left, "; ".join(failed) or None

"""Whether a server is ready: it bears the name it was given, and it generates."""

from __future__ import annotations

import http.client
import time
from dataclasses import dataclass
from typing import Any, Literal

from pivotbench.engines.control import ask
from pivotbench.engines.endpoints import Dialect


@dataclass(frozen=True)
class Probe:
    """What answered at the server's address: nothing usable yet, our server, or another one."""

    state: Literal["loading", "ready", "stranger"]
    detail: str = ""


def openai_probe(url: str, served_name: str, dialect: Dialect, *, timeout_seconds: float) -> Probe:
    """Ask who serves, then for one token by OpenAI's paths; both within ``timeout_seconds``.

    The name comes first: another server on the same port must be told apart even while it is busy.
    """
    deadline = time.monotonic() + timeout_seconds
    question: dict[str, Any] = {"model": served_name, "max_tokens": 1, "temperature": 0}
    if dialect == "openai-completions":
        path, question["prompt"] = "/v1/completions", "Hello"
    else:
        path, question["messages"] = "/v1/chat/completions", [{"role": "user", "content": "Hello"}]
    try:
        status, answer = ask(f"{url}/v1/models", timeout_seconds=timeout_seconds)
        if status == 503:
            return Probe("loading", "the model is loading")
        names = _served_names(answer)
        if served_name not in names:
            return Probe("stranger", f"{url} serves {', '.join(sorted(names)) or 'no model'}")
        left = max(0.1, deadline - time.monotonic())
        status, answer = ask(f"{url}{path}", question, timeout_seconds=left)
    except http.client.HTTPException as error:
        return Probe("stranger", f"{url} does not answer in HTTP: {error!r}")
    except OSError as error:
        return Probe("loading", f"no answer from {url}: {error}")
    if status != 200 or not isinstance(answer, dict) or not answer.get("choices"):
        return Probe("loading", f"a generation answered {status}: {str(answer)[:200]}")
    return Probe("ready")


def _served_names(answer: Any) -> set[str]:
    """Return the ids and aliases a ``/v1/models`` answer lists; empty where it is not such an answer."""
    try:
        return {name for model in answer["data"] for name in (model["id"], *model.get("aliases", ()))}
    except (KeyError, TypeError, AttributeError):
        return set()

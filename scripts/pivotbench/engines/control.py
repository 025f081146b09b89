"""Short questions to a server on this machine: one request, one answer, no proxy in between."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit


def ask(url: str, body: Any = None, *, timeout_seconds: float) -> tuple[int, Any]:
    """Return status and decoded JSON (None where the answer is not JSON); a body makes it a POST.

    Raises OSError where nothing answers in time, http.client.HTTPException where what answers
    does not speak HTTP or stops in the middle.
    """
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(
        parts.hostname or "127.0.0.1", parts.port, timeout=timeout_seconds
    )
    try:
        if body is None:
            connection.request("GET", parts.path or "/")
        else:
            headers = {"Content-Type": "application/json"}
            connection.request("POST", parts.path or "/", json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    try:
        return answer.status, json.loads(text)
    except ValueError:
        return answer.status, None

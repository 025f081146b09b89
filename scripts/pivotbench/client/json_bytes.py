"""JSON to and from the bytes of a request and of a stream's event."""

from __future__ import annotations

import json
from typing import Any

import orjson


def encode(value: Any) -> bytes:
    """Return a value as JSON in UTF-8."""
    return orjson.dumps(value)


def decode(data: bytes) -> Any:
    """Return the value in a JSON text. Raises ValueError.

    What orjson is too strict for is read as leniently as servers write it: NaN, half a surrogate pair, and
    bytes that are no UTF-8, which become U+FFFD.
    """
    try:
        return orjson.loads(data)
    except ValueError:
        return json.loads(data.decode("utf-8", errors="replace"))

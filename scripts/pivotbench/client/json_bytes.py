"""JSON to and from the bytes of a request and of a stream's event."""

from __future__ import annotations

import json
from typing import Any

import orjson


def encode(value: Any) -> bytes:
    """Return a value as JSON in UTF-8; half a surrogate pair, which UTF-8 cannot say, is escaped."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value).encode()


def decode(data: bytes) -> Any:
    """Return the value in a JSON text. Raises ValueError.

    What orjson is too strict for is read as leniently as servers write it: NaN, half a surrogate pair, and
    bytes that are no UTF-8, which become U+FFFD.
    """
    try:
        return orjson.loads(data)
    except ValueError:
        try:
            return json.loads(data.decode("utf-8", errors="replace"))
        except RecursionError:
            raise ValueError("nested too deeply") from None

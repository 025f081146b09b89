"""Events that repeat all that came before, decoded at the cost of what is new.

SGLang's /generate sends the whole text and all token ids again with every token: decoding n of them costs
n * n. Where the bytes of an event begin with those of the one before, up to the end of its text, only the
text after that is decoded, and the ids stay bytes until somebody asks for them.
"""

from __future__ import annotations

import re
from typing import Any

from pivotbench.client.json_bytes import decode

TEXT = re.compile(rb'\{"text": ?"')
# What is left of a JSON string, up to the quote that ends it (RFC 8259, section 7).
REST = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*')
IDS = re.compile(rb'", ?"output_ids": ?\[')


class CumulativeDecoder:
    """Decodes the events of one answer."""

    def __init__(self) -> None:
        self._said = b""
        self._ids: tuple[bytes, int, int] | None = None

    @property
    def token_ids(self) -> list[int] | None:
        """Return the newest ids that ``decode`` left out of an event."""
        if self._ids is None:
            return None
        data, begin, end = self._ids
        return [int(number) for number in data[begin:end].split(b",") if number.strip()]

    def decode(self, data: bytes) -> tuple[dict[str, Any], str | None]:
        """Return an event, and what its text adds where it repeats the one that was followed, else None.

        Raises ValueError for what is no JSON.
        """
        begin = len(self._said)
        if not begin or not data.startswith(self._said):
            return decode(data), None
        end = self._end_of_text(data, begin)
        self._said = data[:end]
        if ids := IDS.match(data, end):
            end_of_ids = data.find(b"]", ids.end())
            self._ids = data, ids.end(), end_of_ids
            event = decode(b'{"text":"%b"%b' % (data[begin:end], data[end_of_ids + 1 :]))
        else:
            event = decode(b'{"text":"' + data[begin:])
        return event, event["text"]

    def follow(self, data: bytes) -> None:
        """Take an event for one with all the text so far: the next is looked at for its bytes."""
        text = TEXT.match(data)
        self._said = data[: self._end_of_text(data, text.end())] if text else b""

    def _end_of_text(self, data: bytes, begin: int) -> int:
        rest = REST.match(data, begin)
        assert rest is not None, "matches anything, if only nothing"
        return rest.end()

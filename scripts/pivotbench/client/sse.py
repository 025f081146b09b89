"""Server-sent events out of a byte stream, however the network cut it."""

from __future__ import annotations

import operator

END_MARK = b"[DONE]"

_is_data = operator.methodcaller("startswith", b"data: ")


class EventParser:
    """Gives the data of each complete event; keeps what is not complete yet.

    Follows "Interpreting an event stream" of the HTML standard (section 9.2.6) for the `data` field and
    for comments; the other fields carry nothing here. The data stays bytes: a character cut by a chunk
    border is whole again before anyone decodes it.
    """

    def __init__(self) -> None:
        self._partial = b""
        self._data: list[bytes] = []
        self._after_carriage_return = False

    def feed(self, received: bytes) -> list[bytes]:
        """Return the data of the events that ``received`` completes, in order."""
        if received.endswith(b"\n\n") and not (self._partial or self._data or b"\r" in received):
            # Nearly always: whole events of one line of data each, mostly a single one.
            self._after_carriage_return = False
            if received.startswith(b"data: ") and received.find(b"\n") == len(received) - 2:
                return [received[6:-2]]
            events = received[:-2].split(b"\n\n")
            if received.count(b"\n") == 2 * len(events) and all(map(_is_data, events)):
                return [event[6:] for event in events]
        if self._after_carriage_return and received:
            received = received.removeprefix(b"\n")
            self._after_carriage_return = False
        lines = (self._partial + received).splitlines(keepends=True)
        self._partial = lines.pop() if lines and not lines[-1].endswith((b"\n", b"\r")) else b""
        self._after_carriage_return = bool(lines) and not self._partial and lines[-1].endswith(b"\r")
        return [event for line in lines if (event := self._take(line.rstrip(b"\r\n"))) is not None]

    def _take(self, line: bytes) -> bytes | None:
        if not line:
            event = b"\n".join(self._data) if self._data else None
            self._data.clear()
            return event
        name, _, value = line.partition(b":")
        if name.removeprefix(b"\xef\xbb\xbf") == b"data":
            self._data.append(value.removeprefix(b" "))
        return None

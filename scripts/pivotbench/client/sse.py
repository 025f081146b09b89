"""Server-sent events out of a byte stream, however the network cut it."""

from __future__ import annotations

END_MARK = b"[DONE]"


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
        if self._data or self._after_carriage_return or b"\r" in received:
            return self._feed_lines(received)
        # Nearly always: events of one line of data each, whole or cut.
        data = self._partial + received if self._partial else received
        self._partial = b""
        events: list[bytes] = []
        at, size = 0, len(data)
        while at < size:
            end = data.find(b"\n", at)
            if end < 0:
                self._partial = data[at:]
                break
            if data[at : at + 6] != b"data: " or data[end + 1 : end + 2] != b"\n":
                return events + self._feed_lines(data[at:])
            events.append(data[at + 6 : end])
            at = end + 2
        return events

    def _feed_lines(self, received: bytes) -> list[bytes]:
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

"""Server-sent events out of a byte stream, however the network cut it."""

from __future__ import annotations


class EventParser:
    """Gives the data of each complete event; keeps what is not complete yet.

    Follows "Interpreting an event stream" of the HTML standard (section 9.2.6) for the `data` field and
    for comments; the other fields carry nothing here. Bytes are decoded a whole line at a time, so a
    character cut by a chunk border is never damaged; bytes that are no UTF-8 become U+FFFD.
    """

    def __init__(self) -> None:
        self._partial = b""
        self._data: list[str] = []
        self._after_carriage_return = False

    def feed(self, received: bytes) -> list[str]:
        """Return the data of the events that ``received`` completes, in order."""
        if self._after_carriage_return and received:
            received = received.removeprefix(b"\n")
            self._after_carriage_return = False
        lines = (self._partial + received).splitlines(keepends=True)
        self._partial = lines.pop() if lines and not lines[-1].endswith((b"\n", b"\r")) else b""
        self._after_carriage_return = bool(lines) and not self._partial and lines[-1].endswith(b"\r")
        return [event for line in lines if (event := self._take(line.rstrip(b"\r\n"))) is not None]

    def _take(self, line: bytes) -> str | None:
        if not line:
            event = "\n".join(self._data) if self._data else None
            self._data.clear()
            return event
        name, _, value = line.partition(b":")
        if name.removeprefix(b"\xef\xbb\xbf") == b"data":
            self._data.append(value.removeprefix(b" ").decode("utf-8", errors="replace"))
        return None

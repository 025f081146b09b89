"""HTTP/1.1 as far as a load client needs it: one POST out, one answer in, however the network cut it.

Follows RFC 9112: message framing of section 6, chunked coding of section 7.1, persistence of section 9.3.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from pivotbench.errors import UserError

HEAD_LIMIT_BYTES = 65536
SIZE_LINE_LIMIT_BYTES = 1024


class BadResponseError(Exception):
    """What came back is no HTTP/1.1 answer, or none to what was asked."""


@dataclass(frozen=True)
class Address:
    """Where a server listens, and the path that its API hangs below."""

    host: str
    port: int
    prefix: str

    @classmethod
    def of(cls, url: str) -> Address:
        """Return the address in an http:// URL. Raises UserError for any other."""
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise UserError(f"{url!r} is no address that load can be sent to: http://HOST:PORT is needed")
        return cls(parts.hostname, parts.port or 80, parts.path.rstrip("/"))

    def post(self, path: str, body: bytes) -> bytes:
        """Return the bytes of a POST of a JSON body, which asks for an answer without compression."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return (
            f"POST {self.prefix}{path} HTTP/1.1\r\nHost: {host}:{self.port}\r\nUser-Agent: pivotbench\r\n"
            "Accept: */*\r\nAccept-Encoding: identity\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        ).encode() + body


class ResponseParser:
    """Takes one answer's bytes as they come and gives its body back, chunked coding and compression undone.

    ``status`` is 0 until the head is whole. ``done`` is true once the body is whole, ``keep`` whether the
    connection may then carry another request. Raises BadResponseError.
    """

    def __init__(self) -> None:
        self.status = 0
        self.done = False
        self.keep = False
        # A bound method would make a cycle of each parser, and the collector is off under load.
        self._read: Callable[[ResponseParser, bytes], bytes] = ResponseParser._read_head
        self._inflate: Callable[[bytes], bytes] | None = None
        self._held = b""
        self._left = 0
        self._in_line_end = False

    def feed(self, received: bytes) -> bytes:
        """Return the body bytes that ``received`` holds."""
        body = self._read(self, received)
        if self._inflate and body:
            try:
                return self._inflate(body)
            except zlib.error as error:
                raise BadResponseError(f"broken compression: {error}") from None
        return body

    def end(self) -> bool:
        """Take the end of the connection; return whether that completes the answer."""
        self.keep = False
        self.done = self.done or self._read is ResponseParser._read_until_close
        return self.done

    def _read_head(self, received: bytes) -> bytes:
        head, blank, rest = (self._held + received).partition(b"\r\n\r\n")
        if not blank:
            self._held = head
            if len(head) > HEAD_LIMIT_BYTES or not b"HTTP/1.".startswith(head[:7]):
                raise BadResponseError(f"no HTTP/1.1 answer: {head[:80]!r}")
            return b""
        self._held = b""
        first, *lines = head.decode("latin-1").split("\r\n")
        version, _, after = first.partition(" ")
        code = after[:3]
        if version not in ("HTTP/1.1", "HTTP/1.0") or not code.isdecimal():
            raise BadResponseError(f"no HTTP/1.1 answer: {first[:80]!r}")
        if code.startswith("1"):
            return self._read_head(rest)
        headers = {
            name.strip().lower(): value.strip().lower()
            for name, _, value in (line.partition(":") for line in lines)
        }
        self.status = int(code)
        said = headers.get("connection", "")
        self.keep = "close" not in said and (version == "HTTP/1.1" or "keep-alive" in said)
        self._inflate = _inflater(headers.get("content-encoding", "identity"))
        self._frame(headers)
        return self._read(self, rest)

    def _frame(self, headers: dict[str, str]) -> None:
        length = headers.get("content-length")
        if self.status in (204, 304):
            length = "0"
        elif "chunked" in headers.get("transfer-encoding", ""):
            self._read = ResponseParser._read_chunked
            return
        if length is None:
            self._read = ResponseParser._read_until_close
        elif length.isdecimal():
            self._left, self._read = int(length), ResponseParser._read_length
        else:
            raise BadResponseError(f"Content-Length {length!r} is no number")

    def _read_until_close(self, received: bytes) -> bytes:
        return received

    def _read_length(self, received: bytes) -> bytes:
        body = received[: self._left]
        self._left -= len(body)
        if not self._left:
            self._finish(len(body) < len(received))
        return body

    def _read_chunked(self, received: bytes) -> bytes:
        at, size = 0, len(received)
        chunks: list[bytes] = []
        if self._left or self._in_line_end or self._held:
            at = self._left + 2 if self._left else size
            chunks.append(self._read_pieces(received[:at]))
            if self._left or self._in_line_end or self._held:
                return chunks[0]
        # Nearly always: whole chunks, mostly a single one.
        while at < size:
            end = received.find(b"\r\n", at)
            begin = end + 2
            after = begin + _chunk_size(received[at:end]) if end > 0 else size
            if after == begin or received[after : after + 2] != b"\r\n":
                chunks.append(self._read_pieces(received[at:]))
                break
            chunks.append(received[begin:after])
            at = after + 2
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def _read_pieces(self, received: bytes) -> bytes:
        data = self._held + received
        self._held = b""
        at, size = 0, len(data)
        pieces: list[bytes] = []
        while at < size:
            if left := self._left:
                piece = data[at : at + left]
                pieces.append(piece)
                at += len(piece)
                self._left = left - len(piece)
                self._in_line_end = not self._left
                continue
            end = data.find(b"\r\n", at)
            if end < 0:
                self._held = data[at:]
                if len(self._held) > SIZE_LINE_LIMIT_BYTES:
                    raise BadResponseError(f"no chunk size: {self._held[:80]!r}")
                break
            line, at = data[at:end], end + 2
            if self._in_line_end:
                self._in_line_end = False
                if line:
                    raise BadResponseError(f"a chunk is longer than its size: {line[:80]!r}")
                continue
            self._left = _chunk_size(line)
            if not self._left:
                self._read = ResponseParser._read_trailers
                self._read_trailers(data[at:])
                break
        return b"".join(pieces)

    def _read_trailers(self, received: bytes) -> bytes:
        data = self._held + received
        while True:
            line, end, data = data.partition(b"\r\n")
            if not end:
                self._held = line
                return b""
            if not line:
                self._finish(bool(data))
                return b""

    def _finish(self, more: bool) -> None:
        self.done = True
        self.keep = self.keep and not more


def _chunk_size(line: bytes) -> int:
    digits = line if line.isalnum() else line.partition(b";")[0].strip()
    try:
        return int(digits if digits.isalnum() else b"", 16)
    except ValueError:
        raise BadResponseError(f"no chunk size: {line[:80]!r}") from None


def _inflater(coding: str) -> Callable[[bytes], bytes] | None:
    if coding in ("identity", ""):
        return None
    if coding in ("gzip", "x-gzip", "deflate"):
        return zlib.decompressobj(wbits=zlib.MAX_WBITS | 32).decompress
    raise BadResponseError(f"the answer is compressed with {coding}, which was not asked for")

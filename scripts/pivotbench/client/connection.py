"""Kept-alive TCP connections that hand on bytes together with the time they arrived."""

from __future__ import annotations

import asyncio
import socket
import time
from dataclasses import dataclass
from typing import Any, Protocol

from pivotbench.client.arrival import ANCILLARY_BYTES, arrival_seconds, ask_for_stamps
from pivotbench.client.http import Address, ResponseParser

CONNECT_SECONDS = 10.0
READ_BYTES = 262144


class Receiver(Protocol):
    """Whoever wants to know when a request left and what came back. Times are of CLOCK_MONOTONIC."""

    def sent(self, seconds: float) -> None:
        """Take the time at which the request begins to leave; called again if it has to be sent again."""
        ...

    def received(self, body: bytes, seconds: float) -> None:
        """Take a piece of a good answer's body; what this raises ends the request."""
        ...


@dataclass(frozen=True)
class Reply:
    """How an answer ended; ``body`` is what the server said with a status other than 200."""

    status: int
    body: bytes


class ConnectionLostError(OSError):
    """The server closed or broke the connection before its answer was whole."""


class Connection:
    """One connection; it is read as long as it lives, so that one the server closed is known as dead."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._loop = asyncio.get_running_loop()
        self._arrived = time.monotonic()
        self._ended: asyncio.Future[Reply] | None = None
        self.alive = True
        self.answered = False
        self._loop.add_reader(sock.fileno(), self._readable)

    async def post(self, request: bytes, receiver: Receiver) -> Reply:
        """Send a request and hand the answer's body on as it comes.

        Raises ConnectionLostError (``answered`` tells whether any of the answer had come), BadResponseError,
        OSError, and what ``receiver`` raises. The connection is closed unless it can carry another request.
        """
        self._parser, self._receiver, self._said = ResponseParser(), receiver, b""
        self._ended = self._loop.create_future()
        self.answered = False
        whole = False
        try:
            self._arrived = time.monotonic()  # nothing of the answer comes before that
            receiver.sent(self._arrived)
            await self._send(request, self._ended)
            reply = await self._ended
            whole = self._parser.keep
        finally:
            self._ended = None
            if not whole:
                self.close()
        return reply

    async def _send(self, request: bytes, ended: asyncio.Future[Reply]) -> None:
        """Send a request, or as much of it as a server takes that answers or leaves before the end."""
        sent = self._sock.send(request)
        if sent == len(request):
            return
        sending = asyncio.ensure_future(self._loop.sock_sendall(self._sock, request[sent:]))
        either: set[asyncio.Future[Any]] = {sending, ended}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not sending.done():
                sending.cancel()
                await asyncio.wait({sending})
        if ended.done():
            self._parser.keep = False
        else:
            sending.result()

    def close(self) -> None:
        """Close the connection; may be called twice."""
        if self.alive:
            self.alive = False
            self._loop.remove_reader(self._sock.fileno())
            self._sock.close()

    def _readable(self) -> None:
        try:
            received, ancillary, _, _ = self._sock.recvmsg(READ_BYTES, ANCILLARY_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self._lost(error)
            return
        self._arrived = seconds = arrival_seconds(ancillary, self._arrived)
        ended = self._ended
        if not received or ended is None:
            # An idle connection that becomes readable was closed, or talks out of turn.
            self._lost(None)
            return
        if ended.done():
            return
        self.answered = True
        parser = self._parser
        try:
            body = parser.feed(received)
            if parser.status == 200:
                if body:
                    self._receiver.received(body, seconds)
            else:
                self._said += body
            if parser.done:
                ended.set_result(Reply(parser.status, self._said))
        except Exception as error:
            ended.set_exception(error)

    def _lost(self, error: OSError | None) -> None:
        ended = self._ended
        if ended is None:
            self.close()
            return
        # Whoever waits for the answer closes the socket, which may still be sending.
        self._loop.remove_reader(self._sock.fileno())
        if ended.done():
            return
        if error is None and self.answered and self._parser.end():
            ended.set_result(Reply(self._parser.status, self._said))
        else:
            where = "in the middle of the answer" if self.answered else "before any answer"
            ended.set_exception(ConnectionLostError(f"{error or 'closed by the server'}, {where}"))


class Pool:
    """Connections to one server, kept from request to request; the one used last is used first.

    No proxy is ever asked.
    """

    def __init__(self, url: str) -> None:
        self.address = Address.of(url)
        self._idle: list[Connection] = []

    def close(self) -> None:
        """Close the idle connections; those in use close themselves when their request ends."""
        while self._idle:
            self._idle.pop().close()

    async def post(self, request: bytes, receiver: Receiver) -> Reply:
        """Send a request on a kept connection or a new one; see Connection.post.

        Where a kept connection turns out to be closed before any of the answer came, the request is sent
        again on the next. (llama.cpp promises to keep a connection and closes it after each stream.)
        """
        while True:
            kept = self._take()
            connection = kept or await _connect(self.address)
            try:
                reply = await connection.post(request, receiver)
            except OSError:
                if kept and not connection.answered:
                    continue
                raise
            if connection.alive:
                self._idle.append(connection)
            return reply

    def _take(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.alive:
                return connection
        return None


async def _connect(address: Address) -> Connection:
    """Open a connection to the first of the host's addresses that takes one. Raises OSError, TimeoutError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    refused: OSError | None = None
    for family, kind, protocol, _, where in found:
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ask_for_stamps(sock)
            async with asyncio.timeout(CONNECT_SECONDS):
                await loop.sock_connect(sock, where)
            return Connection(sock)
        except TimeoutError:
            sock.close()
            refused = OSError(f"no connection to {address.host}:{address.port} within {CONNECT_SECONDS:g} s")
        except OSError as error:
            sock.close()
            refused = error
        except BaseException:
            sock.close()
            raise
    raise refused or OSError(f"{address.host} has no address")

"""A server with a known schedule that writes down when it sent what: the truth a client is held to.

    python -m ground_truth.server '{"ttft_seconds": 0.1, "gap_seconds": 0.02}'

prints its port, answers POSTs on the three paths of answers.py with as many tokens as the request asks for,
and gives its record as JSON for GET /record. It ends with its standard input.

Times are CLOCK_MONOTONIC seconds, which on Linux all processes share. `arrived` is the kernel's stamp of the
request's last packet, `sent[i]` the time just before the call that hands chunk i (its last byte) to the
kernel: a client's TTFT is true if it is sent[0] - arrived, for on loopback a packet is there once it is sent.
Only the standard library, no thread and no task: one epoll loop over sockets and a heap of due times.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import json
import re
import resource
import select
import socket
import struct
import sys
import time
from dataclasses import dataclass, field

from ground_truth import answers

SO_TIMESTAMPNS_NEW = 64
TOKENS_ASKED = re.compile(rb'"max_(?:completion_|new_)?tokens": ?(\d+)')
LENGTH = re.compile(rb"(?i)content-length: *(\d+)")


@dataclass(frozen=True)
class Schedule:
    """When the tokens of an answer leave, from the arrival of its request on.

    The first send is due after ``ttft_seconds``, each further one ``gap_seconds`` later; 0 is a flood: all
    at once, as fast as the client takes it. A send carries ``chunks_per_send`` chunks of ``tokens_per_chunk``
    tokens. ``cut`` sends each in two pieces, half a gap apart, that part in the middle of a character.
    """

    ttft_seconds: float = 0.1
    gap_seconds: float = 0.02
    tokens_per_chunk: int = 1
    chunks_per_send: int = 1
    cut: bool = False


@dataclass
class Answer:
    """One answer of the record; ``sent`` and ``tokens`` have an entry a chunk."""

    path: str
    arrived: float
    sent: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)


class Client:
    """One connection and the answer under way on it."""

    def __init__(self, sock: socket.socket, server: Server) -> None:
        self.sock, self.server = sock, server
        self.request, self.unsent = b"", b""

    def readable(self) -> bool:
        """Take bytes of a request; return whether the connection lives on."""
        try:
            received, ancillary, _, _ = self.sock.recvmsg(262144, 64)
        except OSError:
            return False
        if not received:
            return False
        self.request += received
        head, blank, body = self.request.partition(b"\r\n\r\n")
        length = LENGTH.search(head)
        if blank and len(body) >= (int(length[1]) if length else 0):
            self.request = b""
            self._answer(head, body, _monotonic(ancillary))
        return True

    def _answer(self, head: bytes, body: bytes, arrived: float) -> None:
        method, path, _ = head.decode("latin-1").split(" ", 2)
        if method != "POST":
            said = json.dumps(self.server.answer_get(path)).encode()
            self.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
                % (len(said), said)
            )
            return
        asked = TOKENS_ASKED.search(body)
        schedule, tokens = self.server.schedule, int(asked[1]) if asked else 16
        self.events = answers.events(path, tokens, schedule.tokens_per_chunk)
        self.step, self.left = 0, tokens
        self.answer = Answer(path, arrived)
        self.server.answers.append(self.answer)
        self.due = arrived + schedule.ttft_seconds
        self.server.later(self.due, self)

    def send_due(self) -> None:
        """Send what is due now and say when more is."""
        schedule, step = self.server.schedule, self.step
        flood = not schedule.gap_seconds
        end = len(self.events) if flood else min(len(self.events), step + schedule.chunks_per_send)
        data = b"".join(self.events[step:end])
        data = (answers.HEAD if step == 0 else b"") + data + (answers.END if end == len(self.events) else b"")
        if schedule.cut and not self.unsent:
            middle = data.index("🙂".encode()) + 2
            self.write(data[:middle])
            self.unsent = data[middle:]
            self.server.later(self.due + schedule.gap_seconds / 2, self)
            return
        if schedule.cut:
            data, self.unsent = self.unsent, b""
        now = time.monotonic()
        self.write(data)
        answer = self.answer
        for _ in range(step, end):
            answer.sent.append(now)
            answer.tokens.append(min(self.left, schedule.tokens_per_chunk))
            self.left -= answer.tokens[-1]
        self.step = end
        if end < len(self.events):
            self.due += schedule.gap_seconds
            self.server.later(self.due, self)

    def write(self, data: bytes) -> None:
        """Send; what the connection does not take now is sent when it is ready."""
        if not self.unsent or self.server.schedule.cut:
            try:
                data = data[self.sock.send(data) :]
            except BlockingIOError:
                pass
            except OSError:
                return
        if data:
            self.unsent += data
            self.server.epoll.modify(self.sock, select.EPOLLIN | select.EPOLLOUT)

    def writable(self) -> None:
        """Send what is left."""
        try:
            self.unsent = self.unsent[self.sock.send(self.unsent) :]
        except OSError:
            self.unsent = b""
        if not self.unsent:
            self.server.epoll.modify(self.sock, select.EPOLLIN)


class Server:
    """The sockets, what is due, and the record."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.answers: list[Answer] = []
        self.epoll = select.epoll()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.port: int = self._listener.getsockname()[1]
        self._listener.setblocking(False)
        self._clients: dict[int, Client] = {}
        self._due: list[tuple[float, int, Client]] = []
        self._number = itertools.count()

    def later(self, due: float, client: Client) -> None:
        """Have the client's next send made at ``due``."""
        heapq.heappush(self._due, (due, next(self._number), client))

    def answer_get(self, path: str) -> object:
        """Return what GET gives: the record, else what load clients want to know about a server."""
        if path == "/record":
            return [dataclasses.asdict(answer) for answer in self.answers]
        return {"object": "list", "data": [{"id": "truth", "object": "model"}], "model_path": "truth"}

    def serve(self) -> None:
        """Answer until standard input ends."""
        self.epoll.register(sys.stdin.fileno(), select.EPOLLIN | select.EPOLLHUP)
        self.epoll.register(self._listener, select.EPOLLIN)
        due = self._due
        while True:
            wait = max(0.0, due[0][0] - time.monotonic()) if due else -1
            for descriptor, event in self.epoll.poll(wait):
                if descriptor == sys.stdin.fileno():
                    return
                if descriptor == self._listener.fileno():
                    self._accept()
                    continue
                client = self._clients[descriptor]
                if event & select.EPOLLOUT:
                    client.writable()
                if event & ~select.EPOLLOUT and not client.readable():
                    self.epoll.unregister(descriptor)
                    self._clients.pop(descriptor).sock.close()
            while due and due[0][0] <= time.monotonic():
                heapq.heappop(due)[2].send_due()

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except BlockingIOError:
            return
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS_NEW, 1)
        self._clients[sock.fileno()] = Client(sock, self)
        self.epoll.register(sock, select.EPOLLIN)


def _monotonic(ancillary: list[tuple[int, int, bytes]]) -> float:
    """Return the kernel's stamp on the monotonic clock."""
    now = time.monotonic()
    for _, kind, data in ancillary:
        if kind == SO_TIMESTAMPNS_NEW:
            seconds, nanoseconds = struct.unpack("@qq", data)
            return now - (time.time_ns() - seconds * 10**9 - nanoseconds) / 1e9
    return now


if __name__ == "__main__":
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    server = Server(Schedule(**json.loads(sys.argv[1])))
    print(server.port, flush=True)
    server.serve()

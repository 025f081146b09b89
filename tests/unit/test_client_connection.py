"""A connection against a server that does as it likes with it, byte by byte."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from pivotbench.client import arrival
from pivotbench.client.connection import ConnectionLostError, Pool, Reply

BIG = 64 * 2**20


class Body:
    def __init__(self) -> None:
        self.pieces: list[tuple[bytes, float]] = []

    def sent(self, seconds: float) -> None:
        self.began = seconds

    def received(self, body: bytes, seconds: float) -> None:
        self.pieces.append((body, seconds))


@contextlib.contextmanager
def serving(serve: Callable[[socket.socket], None]) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run() -> None:
            sock, _ = listener.accept()
            with sock:
                serve(sock)

        thread = threading.Thread(target=run)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


def post(url: str, body: bytes, seconds: float = 20.0) -> tuple[Reply, Body]:
    async def go() -> tuple[Reply, Body]:
        receiver = Body()
        with contextlib.closing(Pool(url)) as pool:
            async with asyncio.timeout(seconds):
                return await pool.post(pool.address.post("/", body), receiver), receiver

    return asyncio.run(go())


def test_a_server_that_leaves_during_a_long_request_is_noticed_at_once() -> None:
    def leave(sock: socket.socket) -> None:
        sock.recv(1000)

    with serving(leave) as url, pytest.raises(OSError) as lost:
        post(url, b"x" * BIG)
    assert not isinstance(lost.value, TimeoutError)


def test_a_refusal_of_a_request_that_was_not_read_is_heard() -> None:
    def refuse(sock: socket.socket) -> None:
        sock.recv(1000)
        sock.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 8\r\n\r\ntoo long")
        sock.recv(1)
        time.sleep(0.2)

    with serving(refuse) as url:
        assert post(url, b"x" * BIG)[0] == Reply(413, b"too long")


def test_an_answer_cut_in_its_middle_is_lost_and_its_beginning_kept() -> None:
    def cut(sock: socket.socket) -> None:
        sock.recv(1000)
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf")

    receiver = Body()

    async def go(url: str) -> None:
        with contextlib.closing(Pool(url)) as pool:
            await pool.post(pool.address.post("/", b""), receiver)

    with serving(cut) as url, pytest.raises(ConnectionLostError, match="in the middle of the answer"):
        asyncio.run(go(url))
    assert b"".join(piece for piece, _ in receiver.pieces) == b"half"


def test_bytes_carry_the_time_they_came_and_not_the_time_they_were_read() -> None:
    left: list[float] = []

    def answer(sock: socket.socket) -> None:
        sock.recv(1000)
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
        time.sleep(0.1)
        left.append(time.monotonic())
        sock.sendall(b"cd")

    async def go(url: str) -> Body:
        receiver = Body()
        with contextlib.closing(Pool(url)) as pool:
            asyncio.get_running_loop().call_later(0.05, time.sleep, 2.0)
            await pool.post(pool.address.post("/", b""), receiver)
        return receiver

    with serving(answer) as url:
        read = asyncio.run(go(url))
    body, came = read.pieces[-1]
    assert body.endswith(b"cd") and left[0] <= came < left[0] + 1.0


def test_a_clock_that_is_set_while_a_packet_waits_moves_its_time_no_further_than_the_reading() -> None:
    hour = 3600
    for set_by in (-hour, hour):
        now = time.time_ns() + set_by * 10**9
        stamp = arrival.STAMP.pack(*divmod(now, 10**9))
        before = time.monotonic() - 1.0
        came = arrival.arrival_seconds([(1, arrival.SO_TIMESTAMPNS_NEW, stamp)], before)
        assert before <= came <= time.monotonic()


def test_a_packet_never_comes_before_its_request_left_whatever_the_clock_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def answer(sock: socket.socket) -> None:
        for _ in range(2):
            sock.recv(1000)
            time.sleep(0.05)
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab")

    async def go(url: str) -> list[Body]:
        receivers = [Body(), Body()]
        with contextlib.closing(Pool(url)) as pool:
            for receiver in receivers:
                await pool.post(pool.address.post("/", b""), receiver)
                await asyncio.sleep(0.05)
        return receivers

    ahead = time.time_ns
    monkeypatch.setattr(arrival.time, "time_ns", lambda: ahead() + 3600 * 10**9)
    with serving(answer) as url:
        for receiver in asyncio.run(go(url)):
            [(_, came)] = receiver.pieces
            assert came >= receiver.began + 0.05


def test_where_no_stamp_comes_the_time_of_reading_stands_in() -> None:
    before = time.monotonic()
    assert before <= arrival.arrival_seconds([], 0.0) <= time.monotonic()

"""Several client processes behave as one: whole and cut answers, lag, processor time, and no orphan."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from pivotbench.client import crew, sender
from pivotbench.client.crew import CrewSender
from pivotbench.client.dialects import Ask
from pivotbench.client.member import Member
from pivotbench.client.messages import End, Send, pack, receive
from pivotbench.client.record import Identity
from pivotbench.client.request import Exchange, Target
from pivotbench.client.sender import LocalSender, open_sender
from pivotbench.errors import UserError
from unit.streaming_server import Stream, StreamingServer


async def answer(body: dict[str, Any], stream: Stream) -> None:
    if body["max_tokens"] == 400:
        await stream.refuse(400, "too hot")
        return
    for text in "abc":
        await stream.content(text)
    if body["max_tokens"] == 500:
        await stream.event({"choices": [None]})
    if body["max_tokens"] == 99:
        await asyncio.sleep(30)
    await stream.finish(3)


def exchange(index: int, tokens: int) -> Exchange:
    ask = Ask(({"role": "user", "content": "hi"},), tokens, ignore_eos=True)
    origin = asyncio.get_running_loop().time()
    return Exchange(Identity("w", "text", 1, index, "p"), ask, "openai-chat", origin)


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie"]


def test_answers_come_back_as_from_one_process() -> None:
    async def go(url: str) -> None:
        async with CrewSender(Target(url, "openai-chat", "m", 20.0), 2) as crew:
            pids = [hand.process.pid for hand in crew._hands]
            whole, refused, odd, cut, judged = map(exchange, range(5), (3, 400, 500, 99, 99))
            tasks = [asyncio.create_task(crew.run(e)) for e in (whole, refused, odd, cut, judged)]
            await asyncio.wait(tasks[:3])
            while len(cut.chunks) < 3 or len(judged.chunks) < 3:
                await asyncio.sleep(0.02)
            judged.status, judged.error = "failed", "in flight when the server died"
            judged.end_seconds = 7.0
            for task in tasks[3:]:
                task.cancel()
            await asyncio.gather(*tasks[3:], return_exceptions=True)
            assert crew.cpu_seconds() > time.process_time()
        assert crew.lag_p99_seconds(0, time.monotonic()) is not None
        assert alive(pids) == []
        record = whole.record(measured=True)
        assert (record.status, record.text, record.output_tokens) == ("ok", "abc", 3)
        assert record.chunk_seconds == sorted(record.chunk_seconds) and record.ttft_seconds is not None
        assert 0 < record.sent_seconds < record.chunk_seconds[0]
        assert (refused.status, refused.error) == ("failed", "HTTP 400: too hot")
        assert odd.status == "failed" and "unreadable event" in (odd.error or "")
        assert odd.record(measured=True).text == "abc"
        assert (cut.status, cut.record(measured=False).text) == ("cut", "abc")
        assert (judged.status, judged.error) == ("failed", "in flight when the server died")
        assert judged.record(measured=True).end_seconds == 7.0

    with StreamingServer(answer) as server:
        asyncio.run(go(server.url))


def test_a_fault_of_the_client_in_another_process_is_a_failure_and_not_a_cut() -> None:
    async def go() -> Any:
        told: list[bytes] = []
        carrier = SimpleNamespace(run=lambda exchange: exchange.no_such_method())
        member = Member(carrier, SimpleNamespace(write=told.append))  # type: ignore[arg-type]
        sent = exchange(0, 3)
        orders, said = asyncio.StreamReader(), asyncio.StreamReader()
        orders.feed_data(pack(Send(0, sent.identity, sent.ask, sent.dialect, sent.origin)) + pack(End()))
        await member.listen(orders)
        await asyncio.gather(*member._tasks.values())
        said.feed_data(told[-1])
        return (await receive(said)).outcome

    outcome = asyncio.run(go())
    assert outcome["status"] == "failed" and "no_such_method" in outcome["error"]


def test_the_collector_of_cycles_is_off_only_while_load_is_sent() -> None:
    async def go() -> bool:
        async with LocalSender(Target("http://127.0.0.1:9", "openai-chat", "m", 20.0)):
            return gc.isenabled()

    assert asyncio.run(go()) is False and gc.isenabled()


def test_a_process_that_dies_is_one_clear_line() -> None:
    async def go(url: str) -> None:
        async with CrewSender(Target(url, "openai-chat", "m", 20.0), 1) as crew:
            task = asyncio.create_task(crew.run(exchange(0, 99)))
            await asyncio.sleep(0.1)
            crew._hands[0].process.kill()
            with pytest.raises(UserError, match=r"process 1 of the load client \(pid \d+\) ended"):
                await task
            with pytest.raises(UserError):
                await crew.run(exchange(1, 3))

    with StreamingServer(answer) as server:
        asyncio.run(go(server.url))


def test_a_process_that_cannot_start_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    async def go() -> None:
        async with CrewSender(Target("http://127.0.0.1:9", "openai-chat", "m", 20.0), 2):
            pytest.fail("it started")

    monkeypatch.setattr(crew.sys, "executable", "/bin/false")
    with pytest.raises(UserError, match=r"process [12] of the load client \(pid \d+\) did not start"):
        asyncio.run(go())


def test_no_process_outlives_a_client_that_is_killed() -> None:
    code = """if True:
        import asyncio
        from pivotbench.client.crew import CrewSender
        from pivotbench.client.request import Target
        async def go():
            async with CrewSender(Target("http://127.0.0.1:9", "openai-chat", "m", 20.0), 2) as crew:
                print(*(hand.process.pid for hand in crew._hands), flush=True)
                await asyncio.sleep(60)
        asyncio.run(go())
    """
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    client = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=env, text=True)
    assert client.stdout is not None
    pids = [int(pid) for pid in client.stdout.readline().split()]
    assert len(alive(pids)) == 2
    client.send_signal(signal.SIGKILL)
    client.wait()
    until = time.monotonic() + 30
    while alive(pids) and time.monotonic() < until:
        time.sleep(0.05)
    assert alive(pids) == []


@pytest.mark.parametrize(
    ("cores", "streams", "processes"), [(2, 4096, 1), (16, 1, 1), (16, 128, 1), (16, 129, 2), (16, 10**6, 8)]
)
def test_more_processes_only_where_streams_need_them_and_cores_allow(
    cores: int, streams: int, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender.os, "sched_getaffinity", lambda _: set(range(cores)))
    opened = open_sender(Target("http://127.0.0.1:9", "openai-chat", "m", 20.0), streams)
    assert (1 if isinstance(opened, LocalSender) else opened._processes) == processes

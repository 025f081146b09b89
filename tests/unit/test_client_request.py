"""One request against a real server on loopback: what happened is what the record says."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from pivotbench.client.connection import Pool
from pivotbench.client.dialects import Ask, Message
from pivotbench.client.record import Identity, RequestRecord
from pivotbench.client.request import Exchange, Target
from pivotbench.engines.endpoints import Dialect
from unit.streaming_server import Handler, Stream, StreamingServer

ASK: tuple[Message, ...] = ({"role": "user", "content": "hi"},)


def ask_once(
    handler: Handler,
    *,
    tokens: int = 3,
    stall: float = 5.0,
    times: int = 1,
    dialect: Dialect = "openai-chat",
) -> list[RequestRecord]:
    async def go(url: str) -> list[RequestRecord]:
        records = []
        with contextlib.closing(Pool(url)) as pool:
            for index in range(times):
                exchange = Exchange(
                    Identity("w", "text", 1, index, "p"),
                    Ask(ASK, tokens, ignore_eos=True),
                    dialect,
                    asyncio.get_running_loop().time(),
                )
                await exchange.run(pool, Target(url, dialect, "m", stall))
                records.append(exchange.record(measured=True))
        return records

    with StreamingServer(handler) as server:
        return asyncio.run(go(server.url))


def is_never_fast(record: RequestRecord) -> bool:
    return record.ttft_seconds is record.tpot_seconds is record.e2e_seconds is None


async def good(_: dict[str, Any], stream: Stream) -> None:
    for text in ("a", "b", "c"):
        await stream.content(text)
    await stream.finish(3)


def test_times_follow_their_definitions() -> None:
    async def paced(_: dict[str, Any], stream: Stream) -> None:
        for text in ("a", "b", "c"):
            await asyncio.sleep(0.05)
            await stream.content(text)
        await stream.finish(3)
        await asyncio.sleep(1.0)

    [r] = ask_once(paced)
    assert (r.status, r.text, r.output_tokens, r.stream_tokens) == ("ok", "abc", 3, 3)
    assert r.first_token_seconds == r.chunk_seconds[0]
    assert r.ttft_seconds == pytest.approx(r.chunk_seconds[0] - r.sent_seconds)
    assert r.e2e_seconds == pytest.approx(r.end_seconds - r.sent_seconds)
    assert r.ttft_seconds is not None and r.e2e_seconds is not None
    assert r.tpot_seconds == pytest.approx((r.e2e_seconds - r.ttft_seconds) / 2)
    assert r.ttft_seconds >= 0.05
    assert r.e2e_seconds < 0.9, "the end is the finish reason, not the closing of the stream"


def test_utf8_cut_by_the_network_arrives_whole() -> None:
    async def cut(_: dict[str, Any], stream: Stream) -> None:
        data = 'data: {"choices": [{"delta": {"content": "🙂你"}}]}\n\n'.encode()
        smile = data.index("🙂".encode())
        await stream.send(data[: smile + 1])
        await stream.send(data[smile + 1 : smile + 5])
        await stream.send(data[smile + 5 :])
        await stream.content("\ud83d")
        await stream.content("\ude00")
        await stream.finish(3)

    assert ask_once(cut)[0].text == "🙂你😀"


def test_several_tokens_in_a_chunk_are_all_counted() -> None:
    async def bursts(_: dict[str, Any], stream: Stream) -> None:
        await stream.content("one", timings={"predicted_n": 1})
        await stream.content(" two three", timings={"predicted_n": 4})
        await stream.finish(6)

    [r] = ask_once(bursts, tokens=6)
    assert (r.chunk_tokens, r.stream_tokens, r.output_tokens) == ([1, 5], 4, 6)


def test_a_reset_in_the_middle_is_a_failure() -> None:
    async def breaks(_: dict[str, Any], stream: Stream) -> None:
        await stream.content("a")
        stream.reset()

    [r] = ask_once(breaks)
    assert r.status == "failed" and r.error and "connection lost" in r.error
    assert is_never_fast(r) and r.output_tokens is None and r.text == "a"


def test_a_stream_without_finish_reason_or_end_mark_is_short() -> None:
    async def no_finish(_: dict[str, Any], stream: Stream) -> None:
        await stream.content("a")
        await stream.event("[DONE]")

    async def no_end_mark(_: dict[str, Any], stream: Stream) -> None:
        await stream.content("a")
        await stream.event({"choices": [{"delta": {}, "finish_reason": "length"}]})

    for handler, missing in ((no_finish, "finish reason"), (no_end_mark, "end mark")):
        [r] = ask_once(handler)
        assert r.status == "short" and r.error and missing in r.error
        assert is_never_fast(r)


def test_fewer_tokens_than_asked_for_is_short() -> None:
    [r] = ask_once(good, tokens=4)
    assert (r.status, r.error) == ("short", "3 of 4 tokens (length)")
    assert is_never_fast(r)


def test_an_http_error_keeps_what_the_server_said() -> None:
    async def refuses(_: dict[str, Any], stream: Stream) -> None:
        await stream.refuse(500, "kernel exploded")

    [r] = ask_once(refuses)
    assert (r.status, r.error) == ("failed", "HTTP 500: kernel exploded")


ODD_EVENTS = [
    "null",
    "[1]",
    '"text"',
    "[" * 100_000,
    "{",
    '{"choices": [null]}',
    '{"choices": {"a": 1}}',
    '{"choices": [{"delta": [1]}]}',
    '{"choices": [{"delta": {"content": ["a"]}}]}',
    '{"choices": [{"text": 5}]}',
    '{"choices": [{"delta": {"content": "a"}, "logprobs": {"content": [null]}}]}',
    '{"choices": [{"delta": {"content": "a"}, "logprobs": {"content": [{"logprob": "low"}]}}]}',
    '{"choices": [{"delta": {"content": "a"}, "logprobs": {"content": [{"id": "x"}]}}]}',
    '{"choices": [{"delta": {"content": "a"}, "logprobs": {"content": [{"top_logprobs": [1]}]}}]}',
    '{"usage": "all"}',
    '{"usage": {"completion_tokens": "x"}}',
    '{"usage": {"completion_tokens": Infinity}}',
    '{"usage": {"completion_tokens": 1e30}}',
    '{"usage": {"prompt_tokens_details": {"cached_tokens": "x"}}}',
    '{"usage": {"prompt_tokens_details": [1]}}',
    '{"timings": {"draft_n": [1]}}',
]

ODD_SGLANG_EVENTS = [
    "null",
    '{"text": 5}',
    '{"text": "a", "meta_info": [1]}',
    '{"text": "a", "output_ids": ["x"]}',
    *(
        f'{{"text": "a", "meta_info": {{"finish_reason": "length", "completion_tokens": 3, {odd}}}}}'
        for odd in (
            '"prompt_tokens": "x"',
            '"output_token_logprobs": [null]',
            '"output_token_logprobs": [["low", 1, "a"]]',
            '"output_top_logprobs": [[[1]]]',
            '"spec_verify_ct": {}',
            '"spec_correct_drafts_histogram": ["x"]',
        )
    ),
]


@pytest.mark.parametrize(
    ("dialect", "event"),
    [("openai-chat", event) for event in ODD_EVENTS]
    + [("sglang-generate", event) for event in ODD_SGLANG_EVENTS],
)
def test_an_event_that_cannot_be_read_fails_its_request_and_nothing_else(
    dialect: Dialect, event: str
) -> None:
    async def odd(body: dict[str, Any], stream: Stream) -> None:
        if dialect == "sglang-generate" and "messages" in body:
            await stream.refuse(404, "knows no chat form")
            return
        await stream.event(event)
        if dialect == "openai-chat":
            await stream.finish(3)
        else:
            await stream.event("[DONE]")

    [r] = ask_once(odd, dialect=dialect)
    assert r.status == "failed" and r.error and r.error.startswith("unreadable event: ")
    assert is_never_fast(r)


def test_what_an_event_says_in_half_characters_can_be_kept() -> None:
    async def halves(_: dict[str, Any], stream: Stream) -> None:
        await stream.content("a")
        await stream.finish(3, reason="\ud83d")

    async def complains(_: dict[str, Any], stream: Stream) -> None:
        await stream.event({"error": {"message": "bad \ud83d"}})

    assert ask_once(halves)[0].finish_reason == "\ufffd"
    assert ask_once(complains)[0].error == "reported in the stream: bad \ufffd"


def test_a_prompt_with_half_a_character_is_sent_as_it_is() -> None:
    async def go(url: str) -> str:
        with contextlib.closing(Pool(url)) as pool:
            ask = Ask(({"role": "user", "content": "cut \ud83d here"},), 3, ignore_eos=True)
            began = asyncio.get_running_loop().time()
            exchange = Exchange(Identity("w", "text", 1, 0, "p"), ask, "openai-chat", began)
            await exchange.run(pool, Target(url, "openai-chat", "m", 5.0))
            return exchange.status

    with StreamingServer(good) as server:
        assert asyncio.run(go(server.url)) == "ok"
        assert server.bodies[0]["messages"][0]["content"] == "cut \ud83d here"


@pytest.mark.parametrize("status", [401, 429, 500, 503])
def test_a_chat_form_that_is_refused_for_another_reason_fails_the_request(status: int) -> None:
    async def fails(_: dict[str, Any], stream: Stream) -> None:
        await stream.refuse(status, "too busy")

    [r] = ask_once(fails, dialect="sglang-generate")
    assert (r.status, r.error) == ("failed", f"asked for the chat form: HTTP {status}: too busy")


def test_silence_is_a_timeout_although_pings_go_on() -> None:
    async def hangs(_: dict[str, Any], stream: Stream) -> None:
        await stream.content("a")
        for _ping in range(200):
            await stream.send(b": ping\n\n")
            await asyncio.sleep(0.05)

    [r] = ask_once(hangs, stall=0.3)
    assert r.status == "timeout" and is_never_fast(r)
    assert 0.3 <= r.end_seconds < 9


def test_connections_are_kept_from_request_to_request() -> None:
    connections = []

    async def notes(body: dict[str, Any], stream: Stream) -> None:
        connections.append(stream.connection)
        await good(body, stream)

    assert [r.status for r in ask_once(notes, times=3)] == ["ok"] * 3
    assert connections == [1, 1, 1]


def test_a_kept_connection_that_the_server_closed_costs_no_request() -> None:
    connections = []

    async def closes(body: dict[str, Any], stream: Stream) -> None:
        connections.append(stream.connection)
        await good(body, stream)
        stream.close_when_done()

    records = ask_once(closes, times=6)
    assert [r.status for r in records] == ["ok"] * 6
    assert connections == [1, 2, 3, 4, 5, 6]


def test_a_proxy_in_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    assert ask_once(good)[0].status == "ok"


@pytest.mark.parametrize("refusal", [None, 400, 404])
def test_sglang_is_asked_in_the_models_chat_form_before_time_begins(refusal: int | None) -> None:
    async def sglang(body: dict[str, Any], stream: Stream) -> None:
        if "messages" in body:
            await asyncio.sleep(1.0)
            if refusal is None:
                await stream.whole({"tokens": [1, 5, 2], "count": 3})
            else:
                await stream.refuse(refusal, "no chat template")
            return
        meta = {"completion_tokens": 1, "finish_reason": {"type": "stop"}}
        await stream.event({"text": "Hello", "meta_info": meta})
        await stream.event("[DONE]")

    async def go(url: str) -> RequestRecord:
        with contextlib.closing(Pool(url)) as pool:
            ask = Ask(ASK, 8, ignore_eos=False)
            began = asyncio.get_running_loop().time()
            exchange = Exchange(Identity("w", "text", 1, 0, "p"), ask, "sglang-generate", began)
            await exchange.run(pool, Target(url, "sglang-generate", "m", 5.0))
            return exchange.record(measured=True)

    with StreamingServer(sglang) as server:
        record = asyncio.run(go(server.url))
        asked = server.bodies[-1]
    assert record.status == "ok" and record.e2e_seconds is not None and record.e2e_seconds < 0.9
    sent = {name: asked[name] for name in ("input_ids", "text") if name in asked}
    assert sent == ({"input_ids": [1, 5, 2]} if refusal is None else {"text": "hi"})

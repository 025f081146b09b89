"""Answers to the smoke test's questions: with logprobs once, and plain when repeated."""

from __future__ import annotations

from typing import Any

import pytest
from streaming_server import Stream, StreamingServer

from pivotbench.client import generate


async def says_four(body: dict[str, Any], stream: Stream) -> None:
    assert body["ignore_eos"] is False
    for n, text in enumerate(("It is", " 4"), 1):
        top = [{"id": n, "token": text, "logprob": -0.1}, {"id": 9, "token": " or", "logprob": -2.5}]
        logprobs = {"content": [{"id": n, "token": text, "logprob": -0.1, "top_logprobs": top}]}
        told = {"logprobs": logprobs} if body.get("logprobs") else {}
        await stream.event({"choices": [{"delta": {"content": text}, **told}]})
    await stream.finish(2, reason="stop")


def test_the_first_answer_tells_ids_logprobs_and_alternatives_and_repeats_are_plain() -> None:
    with StreamingServer(says_four) as server:
        said = generate(server.url, "openai-chat", "m", ["2+2?", "again?"], 16, repeats=2, alive=lambda: True)
    assert said.failure is None and said.logprobs_refused is None
    [[one, plain], [two, _]] = said.answers
    assert (one.ask, two.ask) == ("2+2?", "again?")
    assert (one.text, one.token_ids, one.finish_reason, one.output_tokens) == ("It is 4", [1, 2], "stop", 2)
    assert one.logprobs == [-0.1, -0.1]
    assert one.alternatives is not None and one.alternatives[1] == [(2, " 4", -0.1), (9, " or", -2.5)]
    assert (plain.text, plain.token_ids, plain.logprobs) == ("It is 4", None, None)


def test_a_server_that_refuses_logprobs_is_asked_without_and_that_is_told() -> None:
    asked: list[bool] = []

    async def refuses(body: dict[str, Any], stream: Stream) -> None:
        asked.append("logprobs" in body)
        if "logprobs" in body:
            await stream.refuse(400, "speculation knows no logprobs")
        else:
            await says_four(body, stream)

    with StreamingServer(refuses) as server:
        said = generate(server.url, "openai-chat", "m", ["2+2?", "again?"], 16, alive=lambda: True)
    assert "speculation knows no logprobs" in (said.logprobs_refused or "")
    assert [[a.text for a in answers] for answers in said.answers] == [["It is 4"], ["It is 4"]]
    assert asked == [True, False, False]


@pytest.mark.parametrize(
    "told", [{"content": [None]}, {"content": [{"logprob": "low"}]}, {"token_logprobs": [[1]]}, [1]]
)
def test_a_server_whose_logprobs_cannot_be_read_is_asked_without(told: Any) -> None:
    async def tells_badly(body: dict[str, Any], stream: Stream) -> None:
        odd = {"logprobs": told} if body.get("logprobs") else {}
        await stream.event({"choices": [{"delta": {"content": "It is 4"}, **odd}]})
        await stream.finish(2, reason="stop")

    with StreamingServer(tells_badly) as server:
        said = generate(server.url, "openai-chat", "m", ["2+2?"], 16, alive=lambda: True)
    assert "unreadable event" in (said.logprobs_refused or "")
    assert [(a.status, a.text, a.logprobs) for a in said.answers[0]] == [("ok", "It is 4", None)]


def test_tokens_without_a_logprob_are_an_answer_without_logprobs() -> None:
    async def tells_none(_: dict[str, Any], stream: Stream) -> None:
        await stream.event(
            {"choices": [{"delta": {"content": "4"}, "logprobs": {"content": [{"id": 4, "token": "4"}]}}]}
        )
        await stream.finish(1, reason="length")

    with StreamingServer(tells_none) as server:
        said = generate(server.url, "openai-chat", "m", ["2+2?"], 16, alive=lambda: True)
    [[answer]] = said.answers
    assert (answer.status, answer.token_ids, answer.logprobs) == ("ok", [4], None)
    assert said.logprobs_refused is None


def test_a_server_that_refuses_everything_did_not_refuse_logprobs() -> None:
    async def refuses(_: dict[str, Any], stream: Stream) -> None:
        await stream.refuse(400, "no such model")

    with StreamingServer(refuses) as server:
        said = generate(server.url, "openai-chat", "m", ["2+2?"], 16, alive=lambda: True)
    assert said.logprobs_refused is None and said.failure is None
    assert [a.status for a in said.answers[0]] == ["failed"]


def test_a_dead_server_is_asked_no_more() -> None:
    async def dies(_: dict[str, Any], stream: Stream) -> None:
        stream.reset()

    with StreamingServer(dies) as server:
        said = generate(server.url, "openai-chat", "m", ["a", "b"], 16, repeats=3, alive=lambda: False)
    assert said.failure and said.failure.code == "server_died"
    assert [[a.status for a in answers] for answers in said.answers] == [["failed"]]

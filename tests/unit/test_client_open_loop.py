"""Open loops against a real server on loopback: their schedule, latency from it, and their limits."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from pivotbench.client import load as load_module
from pivotbench.client import measure, open_loop
from pivotbench.errors import UserError
from unit.loads import TOKENS, load, paced, plan_of, text
from unit.streaming_server import Handler, Stream, StreamingServer


@pytest.fixture(autouse=True)
def _ready_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_loop, "AHEAD_SECONDS", 0.05)


def stalling(seconds: float, after: int) -> Handler:
    """Answers at once, but once so many whole answers were asked for nobody gets a token for so long."""
    resumes, asked = 0.0, 0

    async def answer(body: dict[str, Any], stream: Stream) -> None:
        nonlocal resumes, asked
        asked += body["max_tokens"] == TOKENS
        if asked == after and not resumes:
            resumes = time.monotonic() + seconds
        await asyncio.sleep(resumes - time.monotonic())
        for n in range(1, body["max_tokens"] + 1):
            await stream.content(f"w{n} ", timings={"predicted_n": n})
        await stream.finish(body["max_tokens"])

    return answer


def test_a_stall_shows_in_every_request_meant_to_go_out_meanwhile(tmp_path: Path) -> None:
    lines = [{"id": "p", "prompt": "question"}]
    load_plan = plan_of({**text(tmp_path, *lines), "rate": [40.0]}, seconds=2.0)
    with StreamingServer(stalling(0.8, after=40)) as server:
        outcome, _ = load(server, load_plan)
    [run] = outcome.runs
    assert (run["concurrency"], run["rate_per_second"]) == (None, 40.0)
    assert run["e2e_seconds"]["p99"] >= 0.7
    waited = [r for r in outcome.records if r.measured and (r.ttft_seconds or 0.0) > 0.2]
    assert len(waited) >= 16, "a closed loop would have kept quiet and shown one"
    for r in outcome.records:
        if r.intended_seconds is not None and r.status == "ok":
            assert r.sent_seconds >= r.intended_seconds
            assert r.e2e_seconds == pytest.approx(r.end_seconds - r.intended_seconds)


def test_an_open_loop_measures_what_its_schedule_says_whatever_the_server(tmp_path: Path) -> None:
    lines = [{"id": f"p{i}", "prompt": f"question {i}"} for i in range(3)]
    load_plan = plan_of({**text(tmp_path, *lines), "rate": [30.0]}, seconds=0.5)
    intended, asked = [], []
    for gap in (0.001, 0.01):
        with StreamingServer(paced(gap)) as server:
            outcome, _ = load(server, load_plan)
            asked.append([b["messages"] for b in server.bodies if b["max_tokens"] == TOKENS])
        [run] = outcome.runs
        arrived = [r for r in outcome.records if r.intended_seconds is not None]
        counted = [r.intended_seconds for r in arrived if r.measured]
        assert outcome.reason is None and run["requests"]["completed"] == len(counted)
        assert not arrived[0].measured, "the lead-in is not measured"
        first = arrived[0].intended_seconds
        intended.append([round(at - first, 6) for at in counted if at is not None and first is not None])
    assert intended[0] == intended[1]
    sent = [{messages[0]["content"] for messages in one} for one in asked]
    assert len(sent[0] & sent[1]) >= run["requests"]["completed"]


def test_an_open_loop_has_prompts_in_chat_form_before_they_are_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    delay = 0.4
    monkeypatch.setattr(open_loop, "AHEAD_SECONDS", 1.6)

    async def sglang(body: dict[str, Any], stream: Stream) -> None:
        if "messages" in body:
            await asyncio.sleep(delay)
            await stream.whole({"tokens": [1, 5, 2]})
            return
        assert body["input_ids"] == [1, 5, 2]
        tokens = body["sampling_params"]["max_new_tokens"]
        meta = {"completion_tokens": tokens, "finish_reason": {"type": "length"}}
        await stream.event({"text": "Hello", "meta_info": meta})
        await stream.event("[DONE]")

    load_plan = plan_of({**text(tmp_path, {"id": "p", "prompt": "question"}), "rate": [10.0]})
    with StreamingServer(sglang) as server:
        outcome = measure(
            server.url, ["sglang-generate"], "m", load_plan, alive=lambda: True, progress=lambda _: None
        )
    [run] = outcome.runs
    assert outcome.reason is None and run["ttft_seconds"]["p50"] < delay


def test_too_many_requests_in_flight_end_an_open_loop_and_are_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_module, "MOST_IN_FLIGHT", 20)
    lines = [{"id": "p", "prompt": "question"}]
    with StreamingServer(stalling(30.0, after=45)) as server:
        outcome, _ = load(server, plan_of({**text(tmp_path, *lines), "rate": [40.0]}, seconds=2.0))
    [run] = outcome.runs
    assert "in_flight_limit" in {w.split(":")[0] for w in run["warnings"]}
    assert 1 <= run["requests"]["failed"] <= 20
    assert run["open_loop"]["unsustainable"]
    assert run["errors"][0].endswith("in flight when the run ended: 20 requests in flight")


def test_a_server_that_dies_ends_an_open_loop_at_once(tmp_path: Path) -> None:
    started = time.monotonic()
    lines = [{"id": "p", "prompt": "question"}]
    with StreamingServer(paced(0.005)) as server:
        workload = {**text(tmp_path, *lines), "rate": [20.0]}
        outcome, _ = load(server, plan_of(workload, seconds=60.0), lambda: time.monotonic() - started < 0.6)
    assert time.monotonic() - started < 30
    assert outcome.reason and outcome.reason.code == "server_died"
    assert "at 20 requests/s" in outcome.reason.message


def test_conversations_have_no_rate(tmp_path: Path) -> None:
    talks = text(tmp_path, {"id": "t", "turns": ["one", "two"]})
    with pytest.raises(UserError, match="concurrency instead"):
        measure(
            "http://127.0.0.1:9",
            ["openai-chat"],
            "m",
            plan_of({**talks, "rate": [1.0]}),
            alive=lambda: True,
            progress=lambda _: None,
        )


@pytest.mark.alone
def test_a_rate_so_low_that_nothing_comes_while_it_leads_in_is_no_unstable_warm_up(tmp_path: Path) -> None:
    load_plan = plan_of({**text(tmp_path, {"id": "p", "prompt": "q"}), "rate": [4.0]}, seconds=0.1)
    with StreamingServer(paced(0.001)) as server:
        outcome, _ = load(server, load_plan)
    [run] = outcome.runs
    assert run["requests"]["completed"] == 4
    assert run["warmup"]["stable"]
    assert run["open_loop"]["in_flight"]["end"] < 4, "the arrival that ends the measured time is not in it"

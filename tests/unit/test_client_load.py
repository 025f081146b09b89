"""Runs against a real server on loopback: what is measured, and how a run ends when the server does."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pivotbench.client import LoadOutcome, LoadPlan, generate, measure
from unit.streaming_server import Handler, Stream, StreamingServer

# Above the least length of a warm-up answer, so that the two can be told apart.
TOKENS = 12


def plan(folder: Path, *, concurrency: int = 1, seconds: float = 0.3, stall: float = 5.0) -> LoadPlan:
    prompts = folder / "prompts.jsonl"
    prompts.write_text("\n".join(json.dumps({"id": f"p{i}", "prompt": f"question {i}"}) for i in range(3)))
    data = {
        "seconds": seconds,
        "windows": 2,
        "min_requests": 4,
        "workloads": {
            "w": {
                "kind": "text",
                "prompts": str(prompts),
                "output_tokens": TOKENS,
                "concurrency": [concurrency],
            }
        },
    }
    base = LoadPlan.from_json(data, seed="study/1")
    return LoadPlan(**(vars(base) | {"stall_seconds": stall}))


def load(
    server: StreamingServer, load_plan: LoadPlan, alive: Callable[[], bool] = lambda: True
) -> tuple[LoadOutcome, list[str]]:
    lines: list[str] = []
    return measure(server.url, "openai-chat", "m", load_plan, alive=alive, progress=lines.append), lines


def paced(gap_seconds: float) -> Handler:
    async def answer(body: dict[str, Any], stream: Stream) -> None:
        for n in range(1, body["max_tokens"] + 1):
            await asyncio.sleep(gap_seconds)
            await stream.content(f"w{n} ", timings={"predicted_n": n})
        await stream.finish(body["max_tokens"])

    return answer


def test_a_run_warms_up_measures_and_leaves_records_that_give_its_windows(tmp_path: Path) -> None:
    with StreamingServer(paced(0.005)) as server:
        outcome, lines = load(server, plan(tmp_path, concurrency=2))
    [run] = outcome.runs
    assert outcome.reason is None
    assert ["warming up" in line for line in lines] == [True, False]
    assert run["requests"]["completed"] >= 4 and run["requests"]["failed"] == 0
    assert run["warmup"]["requests"] >= 4
    windows = run["windows"]
    assert windows[-1]["end_seconds"] - windows[0]["begin_seconds"] >= 0.3
    lengths = [w["end_seconds"] - w["begin_seconds"] for w in windows]
    assert lengths[0] == pytest.approx(lengths[1])
    for window in windows:
        tokens = sum(
            n
            for r in outcome.records
            if r.status in ("ok", "cut")
            for at, n in zip(r.chunk_seconds, r.chunk_tokens, strict=True)
            if window["begin_seconds"] < at <= window["end_seconds"]
        )
        assert window["output_tokens"] == tokens > 0
        assert window["output_tok_s"] == pytest.approx(tokens / lengths[0])
    assert [r.index for r in outcome.records] == list(range(len(outcome.records)))


def test_sglangs_own_dialect_gives_the_same_run(tmp_path: Path) -> None:
    async def answer(body: dict[str, Any], stream: Stream) -> None:
        tokens = body["sampling_params"]["max_new_tokens"]
        text = ""
        for n in range(2, tokens + 1, 2):
            await asyncio.sleep(0.005)
            text += f"w{n} x "
            meta = {
                "completion_tokens": n,
                "prompt_tokens": 5,
                "spec_verify_ct": n // 2,
                "finish_reason": {"type": "length"} if n == tokens else None,
            }
            await stream.event({"text": text, "meta_info": meta})
        await stream.event("[DONE]")

    with StreamingServer(answer) as server:
        outcome = measure(
            server.url, "sglang-generate", "m", plan(tmp_path), alive=lambda: True, progress=lambda _: None
        )
    [run] = outcome.runs
    assert outcome.reason is None and run["requests"]["completed"] >= 4
    assert (run["acceptance"]["length"], run["acceptance"]["counted"]) == (2.0, True)
    assert {tuple(r.chunk_tokens) for r in outcome.records if r.measured} == {(2,) * (TOKENS // 2)}
    assert outcome.records[-1].text.startswith("w2 x w4 x w6 x ")


def test_measured_time_holds_whole_requests_at_concurrency_one(tmp_path: Path) -> None:
    with StreamingServer(paced(0.005)) as server:
        outcome, _ = load(server, plan(tmp_path))
    measured = [r for r in outcome.records if r.measured]
    [run] = outcome.runs
    assert sum(w["output_tokens"] for w in run["windows"]) == TOKENS * len(measured)
    assert run["windows"][-1]["end_seconds"] == measured[-1].end_seconds
    assert not any(r.status == "cut" for r in outcome.records)


def test_every_server_gets_the_same_prompts_in_the_same_order(tmp_path: Path) -> None:
    asked = []
    for gap in (0.001, 0.004):
        with StreamingServer(paced(gap)) as server:
            load(server, plan(tmp_path, seconds=0.2))
            asked.append([b["messages"] for b in server.bodies if b["max_tokens"] == TOKENS])
    both = min(len(asked[0]), len(asked[1]))
    assert both >= 4 and asked[0][:both] == asked[1][:both]
    contents = [m[0]["content"] for m in asked[0]]
    assert len(set(contents)) == len(contents), "a salt makes every prompt new to a prefix cache"


def test_a_server_that_dies_ends_the_run_at_once(tmp_path: Path) -> None:
    dead = False

    async def dies(body: dict[str, Any], stream: Stream) -> None:
        nonlocal dead
        if stream.number > 6:
            dead = True
            stream.reset()
            return
        await paced(0.005)(body, stream)

    with StreamingServer(dies) as server:
        begun = time.monotonic()
        outcome, _ = load(server, plan(tmp_path, concurrency=2, seconds=30), lambda: not dead)
    assert time.monotonic() - begun < 20
    assert outcome.reason and (outcome.reason.code, outcome.reason.kind) == ("server_died", "transient")
    assert any(r.status == "ok" for r in outcome.records), "what was measured until then is kept"


def test_death_is_seen_although_connections_stay_open(tmp_path: Path) -> None:
    async def hangs(_: dict[str, Any], stream: Stream) -> None:
        await stream.content("a")
        await asyncio.sleep(60)

    started = time.monotonic()
    with StreamingServer(hangs) as server:
        outcome, _ = load(server, plan(tmp_path), lambda: time.monotonic() - started < 0.5)
        assert time.monotonic() - started < 20
    assert outcome.reason and outcome.reason.code == "server_died"
    assert [r.status for r in outcome.records] == ["failed"]


def test_a_port_that_nobody_listens_on_is_a_dead_server(tmp_path: Path) -> None:
    with StreamingServer(paced(0.0)) as server:
        server.stop()
        begun = time.monotonic()
        outcome, _ = load(server, plan(tmp_path), lambda: False)
    assert outcome.reason and outcome.reason.code == "server_died"
    assert time.monotonic() - begun < 20


def test_a_hang_is_a_transient_timeout(tmp_path: Path) -> None:
    async def hangs(_: dict[str, Any], stream: Stream) -> None:
        await stream.content("a")
        await asyncio.sleep(3)

    with StreamingServer(hangs) as server:
        outcome, _ = load(server, plan(tmp_path, concurrency=2, stall=0.4))
    assert outcome.reason and (outcome.reason.code, outcome.reason.kind) == ("timeout", "transient")


def test_a_server_that_refuses_every_request_is_not_asked_for_ever(tmp_path: Path) -> None:
    async def refuses(_: dict[str, Any], stream: Stream) -> None:
        await stream.refuse(400, "no such model")

    with StreamingServer(refuses) as server:
        outcome, _ = load(server, plan(tmp_path, seconds=30))
    assert outcome.reason and (outcome.reason.code, outcome.reason.kind) == (
        "requests_failed",
        "deterministic",
    )
    assert "no such model" in outcome.reason.message
    assert len(outcome.records) == 4


def test_generate_returns_what_smoke_judges() -> None:
    async def answers(body: dict[str, Any], stream: Stream) -> None:
        assert body["ignore_eos"] is False
        for n, text in enumerate(("It is", " 4"), 1):
            logprobs = {"content": [{"id": n, "token": text, "logprob": -0.1}]}
            await stream.event({"choices": [{"delta": {"content": text}, "logprobs": logprobs}]})
        await stream.finish(2, reason="stop")

    with StreamingServer(answers) as server:
        [one, two], reason = generate(
            server.url, "openai-chat", "m", ["2+2?", "again?"], 16, alive=lambda: True
        )
    assert reason is None and (one.ask, two.ask) == ("2+2?", "again?")
    assert (one.text, one.token_ids, one.finish_reason, one.output_tokens) == ("It is 4", [1, 2], "stop", 2)


def test_generate_gives_up_on_a_dead_server() -> None:
    async def dies(_: dict[str, Any], stream: Stream) -> None:
        stream.reset()

    with StreamingServer(dies) as server:
        answers, reason = generate(server.url, "openai-chat", "m", ["a", "b"], 16, alive=lambda: False)
    assert reason and reason.code == "server_died"
    assert [a.status for a in answers] == ["failed"]

"""Runs against a real server on loopback: what is measured, and how a run ends when the server does."""

from __future__ import annotations

import asyncio
import json
import resource
import time
from pathlib import Path
from typing import Any

import pytest

from pivotbench.client import load as load_module
from pivotbench.client import measure
from pivotbench.client.open_files import open_files
from pivotbench.client.sender import LocalSender
from pivotbench.engines.endpoints import Dialect
from pivotbench.errors import UserError
from unit.loads import TOKENS, load, paced, plan, plan_of, text
from unit.streaming_server import Stream, StreamingServer


@pytest.mark.alone
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
        if "messages" in body:
            await stream.refuse(404, "knows no chat form")
            return
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
            server.url, ["sglang-generate"], "m", plan(tmp_path), alive=lambda: True, progress=lambda _: None
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


def test_a_conversation_is_sent_turn_by_turn_with_the_real_answers(tmp_path: Path) -> None:
    talks = text(tmp_path, *({"id": f"t{i}", "system": f"s{i}", "turns": ["one", "two"]} for i in range(2)))
    with StreamingServer(paced(0.001)) as server:
        outcome, _ = load(server, plan_of({**talks, "concurrency": [2]}))
        bodies = server.bodies
    assert outcome.reason is None
    assert {r.turn for r in outcome.records if r.measured} == {0, 1}
    openings = {json.dumps(b["messages"]) for b in bodies if len(b["messages"]) == 2}
    later = [b["messages"] for b in bodies if len(b["messages"]) == 4]
    answer = "".join(f"w{n} " for n in range(1, TOKENS + 1))
    assert later
    for messages in later:
        assert json.dumps(messages[:2]) in openings, "the salt of the first turn stays"
        assert [m["content"] for m in messages[2:]] == [answer, "two"]


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-completions", "sglang-generate"])
def test_answers_may_end_where_the_model_ends_them(tmp_path: Path, dialect: Dialect) -> None:
    """The server ends every answer after five tokens, unless it is told to ignore that."""

    async def answer(body: dict[str, Any], stream: Stream) -> None:
        asked = body.get("sampling_params", body)
        own = dialect == "sglang-generate"
        if own and "messages" in body:
            await stream.refuse(404, "knows no chat form")
            return
        most = asked["max_new_tokens" if own else "max_tokens"]
        length = most if asked["ignore_eos"] else min(5, most)
        reason = "length" if length == most else "stop"
        if own:
            meta = {"completion_tokens": length, "prompt_tokens": 5, "finish_reason": {"type": reason}}
            await stream.event({"text": "w " * length, "meta_info": meta})
        else:
            text = "w " * length
            said = {"delta": {"content": text}} if dialect == "openai-chat" else {"text": text}
            await stream.event({"choices": [said | {"finish_reason": reason}]})
            await stream.event({"choices": [], "usage": {"completion_tokens": length, "prompt_tokens": 5}})
        await stream.event("[DONE]")

    asked = text(tmp_path, {"id": "p", "prompt": "Say it."})
    for stop, tokens in (("natural", 5), ("length", TOKENS)):
        load_plan = plan_of({**asked, "concurrency": [1], "stop": stop}, seconds=0.1)
        with StreamingServer(answer) as server:
            outcome = measure(
                server.url, [dialect], "m", load_plan, alive=lambda: True, progress=lambda _: None
            )
        [run] = outcome.runs
        measured = [r for r in outcome.records if r.measured]
        assert {(r.status, r.output_tokens) for r in measured} == {("ok", tokens)}
        assert {r.output_tokens for r in outcome.records if not r.measured} == {8}, (
            "warm-ups are of one length"
        )
        assert run["ended_naturally"] == (len(measured) if stop == "natural" else None)


def test_a_second_turn_that_never_fits_is_told(tmp_path: Path) -> None:
    async def answer(body: dict[str, Any], stream: Stream) -> None:
        if len(body["messages"]) > 1:
            await stream.refuse(400, "the context is too short")
        else:
            await paced(0.001)(body, stream)

    talks = text(tmp_path, *({"id": f"t{i}", "turns": [f"one {i}", "two"]} for i in range(2)))
    with StreamingServer(answer) as server:
        outcome, _ = load(server, plan_of({**talks, "concurrency": [1]}))
    [run] = outcome.runs
    assert outcome.reason is None, "the server answers, if only half of what it is asked"
    [told] = run["unanswered"]
    assert told.startswith("turn 2 of the conversations (") and "context is too short" in told


def test_synthetic_prompts_go_out_as_ids_of_words_where_the_server_tokenizes() -> None:
    synthetic = {"kind": "synthetic", "prompt_tokens": [9, 6], "shared_prefix": 0.5, "concurrency": [1]}
    dialects: list[Dialect] = ["openai-chat", "openai-completions"]

    async def answers(body: dict[str, Any], stream: Stream) -> None:
        assert "messages" not in body
        for n in range(1, body["max_tokens"] + 1):
            await stream.event({"choices": [{"text": f"w{n} "}], "timings": {"predicted_n": n}})
        await stream.event({"choices": [{"text": "", "finish_reason": "length"}]})
        usage = {"completion_tokens": body["max_tokens"], "prompt_tokens": len(body["prompt"])}
        await stream.event({"choices": [], "usage": usage})
        await stream.event("[DONE]")

    with StreamingServer(answers, tokenizer=lambda text: list(range(1, 1 + len(text.split())))) as server:
        outcome = measure(
            server.url, dialects, "m", plan_of(synthetic), alive=lambda: True, progress=lambda _: None
        )
        prompts = [tuple(body["prompt"]) for body in server.bodies]
    [run] = outcome.runs
    assert outcome.reason is None and run["requests"]["completed"] >= 4
    assert {len(prompt) for prompt in prompts} == {9, 6}
    assert {prompt.index(0) for prompt in prompts} == {0}, "the token that begins every text begins these"
    assert len({prompt[:3] for prompt in prompts}) == 1 and len(set(prompts)) == len(prompts)
    assert {r.prompt_ids_sent for r in outcome.records} == {9, 6}
    counted = run["output_tokens"]["text"]
    assert (
        1 <= counted["answers"] <= 8 and counted["tokens"] == counted["server"] == TOKENS * counted["answers"]
    )
    assert not {w.split(":")[0] for w in run["warnings"]} & {"approximate_lengths", "wrong_lengths"}


def test_a_server_that_takes_no_ids_gets_words_and_the_run_says_so() -> None:
    with StreamingServer(paced(0.001)) as server:
        outcome, _ = load(server, plan_of({"kind": "synthetic", "prompt_tokens": [9], "concurrency": [1]}))
        asked = server.bodies[-1]["messages"][0]["content"]
    assert len(asked.split()) == 9
    [run] = outcome.runs
    assert "approximate_lengths" in {w.split(":")[0] for w in run["warnings"]}
    assert run["output_tokens"]["text"] is None


def test_what_a_sender_raises_comes_out_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object) -> None:
        raise UserError("a process of the client is gone")

    monkeypatch.setattr(LocalSender, "run", broken)
    with StreamingServer(paced(0.0)) as server, pytest.raises(UserError, match="of the client is gone"):
        load(server, plan(tmp_path, concurrency=2))


def test_the_limit_on_open_files_is_raised_as_far_as_the_load_needs() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (300, hard))
    try:
        assert open_files(200) == 200 and resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 300
        assert open_files(400) == 400 == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_concurrency_beyond_what_the_machine_can_open_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_module, "open_files", lambda wanted: min(wanted, 1000))
    with pytest.raises(UserError, match="this machine allows 1000"):
        measure(
            "http://127.0.0.1:9",
            ["openai-chat"],
            "m",
            plan(tmp_path, concurrency=1000),
            alive=lambda: True,
            progress=lambda _: None,
        )

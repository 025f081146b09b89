"""A server that stands still while it is measured: the measured time begins anew, twice at most."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from factory import Cell, cell_files
from pivotbench import pace
from pivotbench.client import LoadOutcome, open_loop
from pivotbench.client import loop as loop_module
from pivotbench.client.crew import CrewSender
from pivotbench.client.standstill import StandstillWatch, standstills
from pivotbench.measurements import collect
from unit.loads import TOKENS, load, plan_of, text
from unit.records import record
from unit.streaming_server import Handler, Stream, StreamingServer

# Longer than the least standstill, a second.
STILL_SECONDS = 1.4
FOR_EVER = 1000
PACES: dict[str, dict[str, Any]] = {"closed": {"concurrency": [2]}, "open": {"rate": [12.0]}}


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The runs, by pace, of a server that never stands still."""
    return {pace: measured(tmp_path_factory.mktemp(pace), pausing(0), PACES[pace]) for pace in PACES}


@pytest.fixture(autouse=True)
def _ready_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_loop, "AHEAD_SECONDS", 0.05)


def pausing(times: int, *, tokens: int = 100, seconds: float = STILL_SECONDS) -> Handler:
    """Give a token every 10 ms, but after so many tokens of whole answers none at all for so many seconds."""
    given, resumes, left = 0, 0.0, times

    async def answer(body: dict[str, Any], stream: Stream) -> None:
        nonlocal given, resumes, left
        for n in range(1, body["max_tokens"] + 1):
            await asyncio.sleep(0.01)
            given += body["max_tokens"] == TOKENS
            if left and given >= tokens:
                given, left, resumes = 0, left - 1, time.monotonic() + seconds
            while (rest := resumes - time.monotonic()) > 0:
                await asyncio.sleep(rest)
            await stream.content(f"w{n} ", timings={"predicted_n": n})
        await stream.finish(body["max_tokens"])

    return answer


def measured(
    folder: Path, handler: Handler, pace: dict[str, Any], line: dict[str, Any] | None = None
) -> tuple[dict[str, Any], LoadOutcome, list[str]]:
    """Return the run, all that came of it, and the whole answers' last questions in the order they came."""
    lines = [line] if line else [{"id": f"p{i}", "prompt": f"question {i}"} for i in range(16)]
    with StreamingServer(handler) as server:
        outcome, _ = load(server, plan_of({**text(folder, *lines), **pace}, seconds=1.0))
        asked = [b["messages"][-1]["content"] for b in server.bodies if b["max_tokens"] == TOKENS]
    [run] = outcome.runs
    return run, outcome, asked


def marked(run: dict[str, Any]) -> tuple[int, bool]:
    """Return what the table of measurements says: restarts, and whether the run is ``stalled``."""
    cell = cell_files(Cell("backends", "a", 1, tok_s={("w", 1): 1.0}))
    assert cell.throughput is not None
    cell.throughput["runs"] = [run]
    row = collect([cell]).iloc[0]
    return int(row["restarts"]), bool(row["stalled"])


def warned(run: dict[str, Any]) -> set[str]:
    return {warning.split(":")[0] for warning in run["warnings"]} & {"began_anew", "stood_still"}


@pytest.mark.alone
@pytest.mark.parametrize("pace", PACES)
def test_the_figures_of_a_server_that_stood_still_once_hold_nothing_of_it(
    tmp_path: Path, pace: str, steady: dict[str, Any]
) -> None:
    undisturbed, before, _ = steady[pace]
    run, outcome, asked = measured(tmp_path, pausing(1), PACES[pace])
    ids = [[r.prompt_id for r in found.records if r.measured][:8] for found in (before, outcome)]
    assert ids[0] == ids[1], "all configurations answer the same prompts"
    assert all(window["output_tokens"] for window in run["windows"])
    assert run["standstill"]["times"] == 0
    assert (marked(undisturbed), marked(run)) == ((0, False), (1, False))
    assert (warned(undisturbed), warned(run)) == (set(), {"began_anew"})
    assert run["warmup"]["stood_still_seconds"] == pytest.approx(STILL_SECONDS, abs=0.5)
    assert run["e2e_seconds"]["p99"] < STILL_SECONDS, "no answer that waited is measured"
    assert max(Counter(asked).values()) == 1, "the prefix cache is asked nothing twice"
    begin, end = run["windows"][0]["begin_seconds"], run["windows"][-1]["end_seconds"]
    aside = [r for r in outcome.records if r.output_tokens == TOKENS and r.sent_seconds < begin]
    assert len(aside) >= 8 and not any(r.measured for r in aside)
    rows = [t for r in outcome.records for t in zip(r.chunk_seconds, r.chunk_tokens, strict=True)]
    found = sum(tokens for at, tokens in rows if begin < at <= end)
    assert found == sum(w["output_tokens"] for w in run["windows"]), "anyone can find the figures again"


@pytest.mark.alone
def test_an_open_loop_measures_the_same_intervals_again(tmp_path: Path, steady: dict[str, Any]) -> None:
    intervals = []
    for run, outcome, _ in (steady["open"], measured(tmp_path, pausing(1), PACES["open"])):
        begin = run["windows"][0]["begin_seconds"]
        intervals.append([r.intended_seconds - begin for r in outcome.records if r.measured])
        assert run["open_loop"]["in_flight"]["begin"] <= 6, "no backlog is left of the standstill"
    assert intervals[0] == pytest.approx(intervals[1], abs=1e-6)


@pytest.mark.alone
@pytest.mark.parametrize("pace", PACES)
def test_a_server_that_keeps_standing_still_is_judged_with_its_standstills(tmp_path: Path, pace: str) -> None:
    run, _, _ = measured(tmp_path, pausing(FOR_EVER), PACES[pace])
    assert marked(run) == (2, True)
    assert warned(run) == {"began_anew", "stood_still"}
    assert run["warmup"]["stood_still_seconds"] > 1.5 * STILL_SECONDS
    assert run["standstill"]["times"] > 0
    assert run["e2e_seconds"]["p99"] > STILL_SECONDS, "answers that waited are measured"


@pytest.mark.alone
@pytest.mark.parametrize("pace", PACES)
def test_a_request_that_failed_before_the_time_began_anew_is_lost_as_ever(tmp_path: Path, pace: str) -> None:
    paused, asked = pausing(1), 0

    async def refuses_one(body: dict[str, Any], stream: Stream) -> None:
        nonlocal asked
        asked += body["max_tokens"] == TOKENS
        if asked == 6 and body["max_tokens"] == TOKENS:  # behind the lead-in of an open loop
            await stream.refuse(500, "once")
        else:
            await paused(body, stream)

    run, outcome, _ = measured(tmp_path, refuses_one, PACES[pace])
    assert marked(run) == (1, False)
    assert run["requests"]["failed"] == 1 and any("once" in error for error in run["errors"])
    assert any(warning.startswith("requests_lost") for warning in run["warnings"])
    begin = run["windows"][0]["begin_seconds"]
    aside = [r for r in outcome.records if r.output_tokens == TOKENS and r.end_seconds <= begin]
    assert run["warmup"]["requests"] >= len(aside) > 0


@pytest.mark.alone
def test_processes_of_one_client_begin_anew_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_module, "open_sender", lambda target, _: CrewSender(target, 2))
    run, outcome, _ = measured(tmp_path, pausing(1), {"concurrency": [4]})
    assert marked(run) == (1, False)
    begin = run["windows"][0]["begin_seconds"]
    assert all(r.sent_seconds >= begin for r in outcome.records if r.measured)


@pytest.mark.alone
def test_a_conversation_goes_on_where_the_measured_time_begins_anew(tmp_path: Path) -> None:
    talk = {"id": "t", "turns": ["one", "two", "three"]}
    run, outcome, _ = measured(tmp_path, pausing(1), {"concurrency": [2]}, talk)
    assert marked(run) == (1, False)
    assert {r.turn for r in outcome.records if r.measured} == {0, 1, 2}
    assert run["unanswered"] == []


@pytest.mark.alone
def test_a_server_that_never_speaks_again_is_a_timeout_as_ever(tmp_path: Path) -> None:
    with StreamingServer(pausing(1, seconds=60.0)) as server:
        workload = {**text(tmp_path, {"id": "p", "prompt": "question"}), **PACES["closed"]}
        outcome, _ = load(server, plan_of(workload, seconds=1.0, stall=1.6))
    assert outcome.reason and outcome.reason.code == "timeout"
    assert outcome.runs[0]["warmup"]["restarts"] == 0
    assert any(r.measured and r.status == "ok" for r in outcome.records)


def test_a_server_that_is_slow_to_begin_every_answer_does_not_stand_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "STANDSTILL_LEAST_SECONDS", 0.2)
    swift = pausing(0)

    async def reads_slowly(body: dict[str, Any], stream: Stream) -> None:
        await asyncio.sleep(0.5)
        await swift(body, stream)

    lines = [{"id": "p", "prompt": "question"}]
    with StreamingServer(reads_slowly) as server:
        outcome, _ = load(server, plan_of({**text(tmp_path, *lines), "concurrency": [1]}, seconds=0.3))
    [run] = outcome.runs
    assert run["requests"]["completed"] >= 4
    assert run["standstill"]["limit_seconds"] >= 2 * 0.5
    assert (marked(run), warned(run)) == ((0, False), set())


def test_a_silence_is_a_standstill_only_while_requests_are_in_flight() -> None:
    early = record(sent_seconds=0.0, chunk_seconds=[1.0, 2.0], end_seconds=2.0)
    late = record(sent_seconds=7.0, chunk_seconds=[8.0, 9.0], end_seconds=9.0)
    waiting = record(sent_seconds=3.0, chunk_seconds=[], end_seconds=6.5, status="failed")
    cut = record(sent_seconds=4.0, chunk_seconds=[], end_seconds=4.0, status="cut")
    assert standstills([early, late], 0.0, 9.0, 1.5) == []
    assert standstills([early, late, waiting], 0.0, 9.0, 1.5) == [3.5]
    assert standstills([early, late, cut], 0.0, 9.0, 1.5) == [4.0]
    assert standstills([early], 0.5, 1.5, 0.6) == [], "what is still to come has not been silent"
    assert standstills([cut], 2.0, 8.0, 1.5) == [4.0], "one that was cut was in flight until the end"


def test_what_one_answer_of_the_warm_up_waited_for_is_not_its_nature() -> None:
    slow = record(sent_seconds=0.0, chunk_seconds=[2.0, 2.1], end_seconds=2.1)
    stuck = record(sent_seconds=2.1, chunk_seconds=[4.1, 9.1], end_seconds=9.1)
    watch = StandstillWatch(1.0)
    watch.allow([slow, stuck, record(status="failed", chunk_seconds=[])], longer=4.25)
    assert watch.limit_seconds == 2 * 4.25 * 2.0, "34 tokens, of which the warm-up asks 8, come whole in less"


def test_tokens_that_are_told_late_are_no_silence() -> None:
    watch = StandstillWatch(1.0)
    watch.begin(0.0)
    watch.look(now=1.6, newest_token=0.5)
    told = record(sent_seconds=0.0, chunk_seconds=[0.5, 1.0, 1.5, 1.9], end_seconds=2.0)
    assert not watch.stood_still(2.0, lambda: [told])
    watch.look(now=3.6, newest_token=2.0)
    silent = record(sent_seconds=2.0, chunk_seconds=[3.7], end_seconds=3.8)
    assert watch.stood_still(3.8, lambda: [told, silent])
    assert (watch.restarts, watch.seconds) == (1, pytest.approx(1.7))

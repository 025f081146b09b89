"""Every figure of a run is found again by hand from its records."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import time
from pathlib import Path
from typing import Any

import pytest

from pivotbench.client.acceptance import acceptance
from pivotbench.client.backlog import in_flight
from pivotbench.client.lag import LagSampler, is_client_bound
from pivotbench.client.loop import Measured
from pivotbench.client.parquet import read_requests, write_requests
from pivotbench.client.percentiles import percentile, spread
from pivotbench.client.record import RequestRecord
from pivotbench.client.schedule import Schedule, arrivals
from pivotbench.client.summary import cut_windows, hit_rate, run_entry, token_gaps
from pivotbench.client.unanswered import unanswered
from pivotbench.client.warmup import WarmUp
from pivotbench.errors import UserError
from unit.records import record

MEASURED = Measured(1.0, 5.0, 2, 1.0, True, 0.002, 5.0, 9.0)


def test_windows_count_what_arrived_inside_them() -> None:
    in_flight = record(
        status="cut", measured=False, chunk_seconds=[0.5, 1.0, 2.5, 5.5], chunk_tokens=[5, 5, 3, 5]
    )
    lost = record(status="failed", chunk_seconds=[2.5], chunk_tokens=[100])
    windows = cut_windows([record(), in_flight, lost], MEASURED, 2)
    assert [(w["begin_seconds"], w["end_seconds"]) for w in windows] == [(1.0, 3.0), (3.0, 5.0)]
    assert [w["output_tokens"] for w in windows] == [2 + 3, 2]
    assert [w["output_tok_s"] for w in windows] == [2.5, 1.0]
    assert [w["requests_completed"] for w in windows] == [0, 1]


def test_what_arrives_at_an_edge_belongs_to_the_window_that_ends_there() -> None:
    edges = record(chunk_seconds=[1.0, 3.0, 3.1, 5.0, 5.1], chunk_tokens=[1, 2, 4, 8, 16], end_seconds=3.0)
    windows = cut_windows([edges], MEASURED, 2)
    assert [w["output_tokens"] for w in windows] == [2, 4 + 8]
    assert [w["requests_completed"] for w in windows] == [1, 0]


@pytest.mark.parametrize("burst_seconds", [0.0, 0.0001])
def test_an_answer_that_comes_all_at_once_does_not_make_the_client_the_limit(burst_seconds: float) -> None:
    times = [5.0 - burst_seconds] * 2 + [5.0] * 2
    entry = run_entry([record(chunk_seconds=times, tpot_seconds=burst_seconds / 3)], MEASURED, 1)
    assert (entry["client"]["token_gap_seconds"], entry["client"]["bound"]) == (1.0, False)
    # A stream with tokens 0.1 ms apart is another case.
    fast = record(chunk_seconds=[4.9997 + i / 10_000 for i in range(400)], chunk_tokens=[1] * 400)
    entry = run_entry([dataclasses.replace(fast, tpot_seconds=0.0001)], MEASURED, 1)
    assert entry["client"]["bound"] is True


def test_itl_is_per_token_also_when_a_chunk_carries_several() -> None:
    r = record(chunk_seconds=[2.0, 3.0, 3.9], chunk_tokens=[1, 2, 3], tpot_seconds=0.38)
    assert token_gaps(r) == pytest.approx([0.5, 0.5, 0.3, 0.3, 0.3])


def test_one_burst_in_several_chunks_is_one_arrival() -> None:
    packed = record(chunk_seconds=[2.0, 2.03], chunk_tokens=[1, 3], tpot_seconds=0.01)
    loose = record(chunk_seconds=[2.0, 2.03, 2.0302, 2.0304], chunk_tokens=[1, 1, 1, 1], tpot_seconds=0.01)
    assert token_gaps(loose) == pytest.approx(token_gaps(packed))
    assert token_gaps(packed) == pytest.approx([0.01] * 3)


def test_a_stream_faster_than_a_burst_is_no_burst() -> None:
    r = record(chunk_seconds=[i * 0.0005 for i in range(5)], chunk_tokens=[1] * 5, tpot_seconds=0.0005)
    assert token_gaps(r) == pytest.approx([0.0005] * 4)


def test_a_request_that_was_not_ok_has_no_say_in_latency() -> None:
    records = [
        record(),
        record(index=1, status="failed", error="HTTP 500: x", ttft_seconds=None, e2e_seconds=None),
    ]
    records.append(record(index=2, status="short", error="2 of 4", ttft_seconds=None, e2e_seconds=None))
    records.append(record(index=3, measured=False, ttft_seconds=0.001))
    entry = run_entry(records, MEASURED, 2)
    assert entry["requests"] == {"completed": 1, "failed": 1, "short": 1, "timeout": 0}
    assert entry["ttft_seconds"] == {"mean": 1.0, "p50": 1.0, "p90": 1.0, "p99": 1.0}
    assert entry["output_tokens"] == {"server": 4, "stream": 4, "text": None}
    assert entry["errors"] == ["1 x HTTP 500: x", "1 x 2 of 4"]
    assert [w.split(":")[0] for w in entry["warnings"]] == ["requests_lost"]


def test_over_all_requests_one_that_was_lost_takes_for_ever() -> None:
    whole = [record(index=n, ttft_seconds=float(n)) for n in range(1, 10)]
    lost = record(index=10, status="timeout", ttft_seconds=None, tpot_seconds=None, e2e_seconds=None)
    entry = run_entry([*whole, lost], MEASURED, 2)
    assert entry["ttft_seconds"]["p50"] == 5.0
    assert entry["all_requests"]["ttft_seconds"]["p50"] == 5.5
    assert entry["all_requests"]["ttft_seconds"]["p99"] is None
    assert entry["all_requests"]["e2e_seconds"] == {"p50": 4.0, "p90": None, "p95": None, "p99": None}
    assert run_entry(whole, MEASURED, 2)["all_requests"]["ttft_seconds"]["p99"] == pytest.approx(8.92)


def test_differing_token_counts_and_cached_prompts_are_said() -> None:
    entry = run_entry([record(stream_tokens=3, cached_tokens=10)], MEASURED, 1)
    assert [w.split(":")[0] for w in entry["warnings"]] == ["counts_differ", "cached_prompts"]
    assert "4 output tokens, its streams 3" in entry["warnings"][0]


def codes(records: list[RequestRecord], **more: Any) -> list[str]:
    return [w.split(":")[0] for w in run_entry(records, MEASURED, 1, **more)["warnings"]]


def test_text_that_holds_fewer_tokens_than_the_server_counts_is_said() -> None:
    assert codes([record()], by_text={"answers": 8, "tokens": 91, "server": 100}) == []
    assert codes([record()], by_text={"answers": 8, "tokens": 89, "server": 100}) == ["text_differs"]


def test_a_synthetic_prompt_of_another_length_is_said_but_for_a_first_token_of_the_servers_own() -> None:
    asked = {"kind": "synthetic", "prompt_ids_sent": 10}
    assert codes([record(prompt_tokens=n, **asked) for n in (10, 11)]) == []
    for wrong in (9, 12):
        assert codes([record(prompt_tokens=wrong, **asked)]) == ["wrong_lengths"]
    assert codes([record(kind="synthetic")]) == ["approximate_lengths"]


def test_an_answer_that_ends_by_itself_is_counted_and_its_end_token_has_no_text() -> None:
    ended = {"stop": "natural", "finish_reason": "stop"}
    run = run_entry([record(**ended), record(stop="natural")], MEASURED, 1)
    assert (run["stop"], run["ended_naturally"], run["requests"]["short"]) == ("natural", 1, 0)
    assert run_entry([record()], MEASURED, 1)["ended_naturally"] is None
    by_text = {"answers": 8, "tokens": 8, "server": 16}
    assert codes([record(**ended)], by_text=by_text) == []
    assert codes([record()], by_text=by_text) == ["text_differs"]


def lost(prompt: str, turn: int = 0) -> RequestRecord:
    times = dict.fromkeys(("ttft_seconds", "tpot_seconds", "e2e_seconds"))
    return record(prompt_id=prompt, turn=turn, status="failed", error="HTTP 400: too long", **times)


def test_a_turn_that_failed_whenever_it_was_sent_is_told_and_makes_the_run_another_one() -> None:
    run = run_entry([record(), lost("p", 1), record(), lost("q", 1)], MEASURED, 1)
    assert run["unanswered"] == ["turn 2 of the conversations (2 times: HTTP 400: too long)"]
    assert [w.split(":")[0] for w in run["warnings"]] == ["requests_lost", "unanswered"]
    assert run_entry([record(), lost("p", 1), record(turn=1)], MEASURED, 1)["unanswered"] == []
    cut = record(turn=1, status="cut", measured=False)
    assert run_entry([record(), cut], MEASURED, 1)["unanswered"] == [], "nobody knows how it would have ended"


def test_a_prompt_that_failed_whenever_it_was_sent_is_told_and_one_bad_moment_is_not() -> None:
    assert unanswered([record(), lost("long"), lost("long")]) == ["prompt long (2 times: HTTP 400: too long)"]
    assert unanswered([record(), lost("p"), lost("q")]) == []


def test_the_hit_rate_is_of_tokens_and_null_where_the_server_does_not_tell() -> None:
    assert hit_rate([record(cached_tokens=10), record(prompt_tokens=30)]) == 10 / 40
    silent = run_entry([record(cached_tokens=None)], MEASURED, 1)["prompt_tokens"]
    assert silent == {"server": 10, "cached": None, "hit_rate": None}
    later = record(turn=1, cached_tokens=10)
    assert codes([later]) == [], "the history of a conversation may well be cached"


def test_in_flight_is_counted_from_the_intended_time_to_the_end() -> None:
    records = [
        record(intended_seconds=0.5, end_seconds=2.0),
        record(intended_seconds=1.5, sent_seconds=4.0, end_seconds=4.5),
        record(intended_seconds=3.0, status="cut", end_seconds=3.1),
    ]
    flying = in_flight(records, 1.0, 5.0)
    assert (flying.begin, flying.end, flying.peak) == (1, 1, 2)
    assert flying.mean == pytest.approx((1.0 + 3.0 + 2.0) / 4)


def open_loop(service_seconds: float, servers: int) -> dict[str, Any]:
    """A second of Poisson arrivals at 200/s, answered in turn by so many servers."""
    free, records = [0.0] * servers, []
    for index, at in enumerate(arrivals(200.0, "s")):
        if at > 6.0:
            break
        free.sort()
        free[0] = max(free[0], at) + service_seconds
        records.append(
            record(index=index, intended_seconds=at, end_seconds=free[0], measured=1.0 <= at < 5.0)
        )
    return run_entry(records, MEASURED, 1)


def test_a_rate_that_the_server_sustains_is_not_called_unsustainable_and_one_above_is() -> None:
    steady, swamped = open_loop(0.1, servers=40), open_loop(0.1, servers=15)
    assert steady["open_loop"]["arrivals_per_second"] == pytest.approx(200, rel=0.1)
    assert steady["open_loop"]["completed_per_second"] == pytest.approx(200, rel=0.1)
    assert steady["warnings"] == []
    assert swamped["open_loop"]["completed_per_second"] == pytest.approx(150, rel=0.1)
    assert [w.split(":")[0] for w in swamped["warnings"]] == ["unsustainable"]


def test_a_run_that_never_began_has_no_figures() -> None:
    never = Measured(None, None, 0, 3.0, False, None, None, 9.0)
    entry = run_entry([record(measured=False, status="failed")], never, 2)
    assert entry["windows"] == []
    assert entry["e2e_seconds"]["p99"] is None
    assert entry["client"]["bound"] is False


def test_counted_verify_steps_give_the_acceptance_length() -> None:
    records = [
        record(
            output_tokens=30,
            verify_steps=10,
            draft_proposed=40,
            draft_accepted=20,
            accept_histogram=[2, 4, 4],
        ),
        record(output_tokens=10, verify_steps=10, draft_proposed=40, draft_accepted=0, accept_histogram=[10]),
        record(output_tokens=999),
    ]
    assert acceptance(records) == {
        "length": 40 / 20,
        "proposed": 80,
        "accepted": 20,
        "verify_steps": 20,
        "per_position": [8 / 20, 4 / 20],
        "counted": True,
    }


def test_derived_steps_include_answers_in_which_nothing_was_drafted() -> None:
    records = [record(output_tokens=96, draft_proposed=80, draft_accepted=66), record(output_tokens=96)]
    figures = acceptance(records)
    assert figures["length"] == pytest.approx(192 / (192 - 66))
    assert (figures["verify_steps"], figures["counted"]) == (126, False)


def test_not_reported_stays_null() -> None:
    figures = acceptance([record()])
    assert figures.pop("counted") is False
    assert set(figures.values()) == {None}


def test_bad_answers_are_counted_and_the_first_is_kept_as_evidence() -> None:
    bad = record(prompt_id="q", text="!" * 96)
    entry = run_entry([record(), bad, bad], MEASURED, 1)
    assert (entry["answers"]["inspected"], entry["answers"]["bad"]["repeated_characters"]) == (3, 2)
    first = entry["answers"]["first"]
    assert (first["prompt_id"], first["text"]) == ("q", "!" * 96)
    assert run_entry([record()], MEASURED, 1)["answers"]["first"] is None


def test_percentiles_are_numpys_default() -> None:
    numpy = pytest.importorskip("numpy")
    values = [3.0, 1.0, 4.0, 1.5, 9.0, 2.6]
    for p in (0, 50, 90, 99, 100):
        assert percentile(values, p) == pytest.approx(float(numpy.percentile(values, p)))
    assert spread([]) == {"mean": None, "p50": None, "p90": None, "p99": None}


def test_the_client_is_the_limit_only_when_it_wakes_later_than_a_token_takes() -> None:
    assert not is_client_bound(0.010, 0.020)
    assert is_client_bound(0.025, 0.020)
    assert not is_client_bound(None, 0.020)
    assert not is_client_bound(0.010, 0.0), "of an answer in one piece there is no gap"


def test_a_blocked_event_loop_is_seen_as_lag() -> None:
    async def blocked() -> float | None:
        sampler = LagSampler()
        sampling = asyncio.create_task(sampler.run())
        begin = asyncio.get_running_loop().time()
        await asyncio.sleep(0.05)
        time.sleep(0.1)
        await asyncio.sleep(0.02)
        sampling.cancel()
        return sampler.p99_seconds(begin, asyncio.get_running_loop().time())

    lag = asyncio.run(blocked())
    assert lag is not None and lag > 0.05


@pytest.mark.alone
def test_an_idle_event_loop_is_no_limit_to_tokens_a_millisecond_apart() -> None:
    async def idle() -> float | None:
        sampler = LagSampler()
        sampling = asyncio.create_task(sampler.run())
        begin = asyncio.get_running_loop().time()
        await asyncio.sleep(0.5)
        sampling.cancel()
        lags = sorted(lag for _, lag in sampler.samples)
        assert begin < sampler.samples[0][0]
        return lags[len(lags) // 2]

    lag = asyncio.run(idle())
    assert lag is not None and not is_client_bound(lag, 0.0012)


def test_requests_parquet_keeps_every_field(tmp_path: Path) -> None:
    records = [
        record(),
        record(index=1, accept_histogram=[1, 2], verify_steps=3, text="你好 🙂", e2e_seconds=None),
    ]
    written = write_requests(tmp_path / "requests.parquet", records)
    assert (written["path"], written["rows"]) == ("requests.parquet", 2)
    assert read_requests(tmp_path, written) == records


def test_raw_requests_hold_no_secret_in_errors_and_texts(tmp_path: Path) -> None:
    issued = "sk-" + "aB3" * 10
    failed = record(status="failed", error=f"HTTP 500: Bearer {issued}, licence correct-horse", text="")
    echoed = record(text="It is correct-horse.")
    written = write_requests(tmp_path / "requests.parquet", [failed, echoed], ["correct-horse"])
    first, second = read_requests(tmp_path, written)
    assert first.error == "HTTP 500: Bearer [redacted], licence [redacted]"
    assert (second.error, second.text) == (None, "It is [redacted].")


def test_rows_that_are_not_those_that_were_written_are_refused_in_one_line(tmp_path: Path) -> None:
    written = write_requests(tmp_path / "requests.parquet", [record()])
    write_requests(tmp_path / "requests.parquet", [record(output_tokens=5)])
    with pytest.raises(
        UserError, match=r"requests\.parquet: not the rows that .* restore the file"
    ) as caught:
        read_requests(tmp_path, written)
    assert "\n" not in str(caught.value)


def test_arrivals_are_poisson_and_the_same_for_every_configuration() -> None:
    times = list(itertools.islice(arrivals(50.0, "s"), 5000))
    assert times == list(itertools.islice(arrivals(50.0, "s"), 5000)) == sorted(times)
    gaps = [b - a for a, b in itertools.pairwise(times)]
    mean = sum(gaps) / len(gaps)
    deviation = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    assert mean == pytest.approx(1 / 50, rel=0.05) and deviation == pytest.approx(mean, rel=0.1)


@pytest.mark.parametrize(("rate", "seconds"), [(20.0, 10.0), (0.5, 1.0)])
def test_what_is_measured_follows_from_the_schedule_alone(rate: float, seconds: float) -> None:
    schedule = Schedule.of(rate, "s", seconds, min_requests=8)
    until = itertools.takewhile(lambda at: at < schedule.end_seconds, schedule)
    assert sum(map(schedule.counts, until)) == schedule.requests >= 8
    assert schedule.end_seconds - schedule.begin_seconds >= seconds


def test_a_server_is_warm_once_two_readings_agree_or_the_time_is_up() -> None:
    settles = WarmUp(2, 60.0)
    over = [settles.take(tok_s, 1.0) for tok_s in (10, 10, 50, 50, 52, 53)]
    assert over == [False] * 5 + [True] and settles.stable
    never = WarmUp(1, 60.0)
    assert [never.take(tok_s, at) for tok_s, at in ((10, 1.0), (50, 2.0), (10, 61.0))] == [False, False, True]
    assert not never.stable

"""Every figure of a run is found again by hand from its records."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from pathlib import Path
from typing import Any

import pytest

from pivotbench.client.closed_loop import Measured
from pivotbench.client.lag import LagSampler, is_client_bound
from pivotbench.client.parquet import read_requests, write_requests
from pivotbench.client.percentiles import percentile, spread
from pivotbench.client.request import RequestRecord
from pivotbench.client.summary import acceptance, cut_windows, run_entry, token_gaps

MEASURED = Measured(1.0, 5.0, 2, 1.0, True, 0.002, 5.0)


def record(**changes: Any) -> RequestRecord:
    """Four tokens, one each second from 2 to 5; sent at 1."""
    base = RequestRecord(
        workload="w",
        kind="text",
        concurrency=1,
        index=0,
        measured=True,
        prompt_id="p",
        status="ok",
        finish_reason="length",
        error=None,
        prompt_tokens=10,
        cached_tokens=0,
        output_tokens=4,
        stream_tokens=4,
        sent_seconds=1.0,
        first_token_seconds=2.0,
        end_seconds=5.0,
        ttft_seconds=1.0,
        tpot_seconds=1.0,
        e2e_seconds=4.0,
        chunk_seconds=[2.0, 3.0, 4.0, 5.0],
        chunk_tokens=[1, 1, 1, 1],
        draft_proposed=None,
        draft_accepted=None,
        verify_steps=None,
        accept_histogram=None,
        text="one two three four",
    )
    return dataclasses.replace(base, **changes)


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
    entry = run_entry(records, MEASURED, 2, {"cpu_percent": 50.0})
    assert entry["requests"] == {"completed": 1, "failed": 1, "short": 1, "timeout": 0}
    assert entry["ttft_seconds"] == {"mean": 1.0, "p50": 1.0, "p90": 1.0, "p99": 1.0}
    assert entry["output_tokens"] == {"server": 4, "stream": 4}
    assert entry["errors"] == ["1 x HTTP 500: x", "1 x 2 of 4"]
    assert [w.split(":")[0] for w in entry["warnings"]] == ["requests_lost"]


def test_differing_token_counts_and_cached_prompts_are_said() -> None:
    entry = run_entry([record(stream_tokens=3, cached_tokens=10)], MEASURED, 1, {})
    assert [w.split(":")[0] for w in entry["warnings"]] == ["counts_differ", "cached_prompts"]
    assert "4 output tokens, its streams 3" in entry["warnings"][0]


def test_a_run_that_never_began_has_no_figures() -> None:
    never = Measured(None, None, 0, 3.0, False, None, None)
    entry = run_entry([record(measured=False, status="failed")], never, 2, {})
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


def test_garbage_names_the_detectors_that_fired() -> None:
    assert run_entry([record(), record(text="!" * 96)], MEASURED, 1, {})["garbage"] == ["repeated_characters"]


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
    assert read_requests(tmp_path / "requests.parquet") == records

"""Acceptance from two sources: what answers report, and what the server counts in its metrics."""

from __future__ import annotations

import http.server
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import scripted
from pivotbench.client import LoadPlan, measure
from pivotbench.client.acceptance import acceptance
from pivotbench.client.record import RequestRecord
from pivotbench.client.witness import TOLERANCE, Witness, cross_check
from pivotbench.engines.counters import DraftCounters, sums
from pivotbench.engines.llamacpp import LLAMACPP
from pivotbench.engines.sglang import SGLANG
from pivotbench.telemetry import Sampler
from unit.records import record as request_record

LLAMACPP_METRICS = """\
# HELP llamacpp:tokens_predicted_total Number of generation tokens processed
# TYPE llamacpp:tokens_predicted_total counter
llamacpp:tokens_predicted_total 400
llamacpp:n_decode_total 214
llamacpp:spec_decode_num_draft_tokens_total 363
llamacpp:spec_decode_num_accepted_tokens_total 186
llamacpp:spec_decode_num_drafts_total 17
llamacpp:requests_processing 2
llamacpp:requests_deferred 1
"""
SGLANG_METRICS = """\
# HELP sglang:spec_verify_calls_total Number of speculative decoding verification calls.
# TYPE sglang:spec_verify_calls_total counter
sglang:generation_tokens_total{is_streaming="true",model_name="m"} 300.0
sglang:generation_tokens_total{is_streaming="false",model_name="m"} 1e2
sglang:spec_verify_calls_total{model_name="odd \\"} name"} 160.0 1700000000000
sglang:spec_accept_length{tp_rank="0"} 9.9
"""
SGLANG_LOADS = """{"version": "0.5.16", "loads": [
{"dp_rank": 0, "num_running_reqs": 2, "num_waiting_reqs": 1, "queues": {"waiting": 1}},
{"dp_rank": 1, "num_running_reqs": 4, "num_waiting_reqs": 0}]}"""


def record(tokens: int, **changes: Any) -> RequestRecord:
    """Return a request whose answer has so many tokens."""
    return request_record(output_tokens=tokens, stream_tokens=tokens, **changes)


@pytest.fixture
def metrics_url(request: pytest.FixtureRequest) -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(request.param.encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.parametrize("metrics_url", [LLAMACPP_METRICS], indirect=True)
def test_llamacpps_counters_are_read_under_their_names(metrics_url: str) -> None:
    counters = LLAMACPP.draft_counters(metrics_url)
    assert counters == DraftCounters(output_tokens=400, proposed=363, accepted=186, in_flight=2)
    assert counters.length == pytest.approx(400 / 214), (
        "its passes over a single request, which it counts too"
    )


@pytest.mark.parametrize("metrics_url", [SGLANG_METRICS], indirect=True)
def test_sglangs_counters_add_up_over_labels_and_its_gauges_are_left_alone(metrics_url: str) -> None:
    counters = SGLANG.draft_counters(metrics_url)
    assert counters == DraftCounters(output_tokens=400, verify_steps=160)
    assert counters.length == 2.5


def test_a_server_without_metrics_counts_nothing() -> None:
    assert SGLANG.draft_counters("http://127.0.0.1:9") is None


@pytest.mark.parametrize("metrics_url", [LLAMACPP_METRICS], indirect=True)
def test_llamacpp_holds_what_it_processes_and_what_waits_for_a_slot(metrics_url: str) -> None:
    assert LLAMACPP.requests_held(metrics_url, 2.0) == 3


@pytest.mark.parametrize("metrics_url", [SGLANG_LOADS], indirect=True)
def test_sglang_holds_what_all_its_ranks_run_and_queue(metrics_url: str) -> None:
    assert SGLANG.requests_held(metrics_url, 2.0) == 7


@pytest.mark.parametrize("metrics_url", ["", "{}", '{"loads": [{}]}', '{"loads": [7]}', "[1]"], indirect=True)
def test_a_server_that_answers_something_else_does_not_tell_what_it_holds(metrics_url: str) -> None:
    assert SGLANG.requests_held(metrics_url, 2.0) is LLAMACPP.requests_held(metrics_url, 2.0) is None
    assert SGLANG.requests_held("http://127.0.0.1:9", 2.0) is None


def test_text_that_is_no_sample_is_no_metric() -> None:
    assert sums("# TYPE a counter\n\n<html>\na{} 1\nb 2 3 4 5\n") == {"a": 1.0}


@pytest.mark.parametrize("line", ["a NaN", "a +Inf", "a -Inf", "Not Found", "a 1e999"])
def test_a_value_that_is_no_finite_number_is_left_out(line: str) -> None:
    assert sums(f"{line}\na 2\n") == {"a": 2.0}


def test_a_counter_that_appears_with_its_first_event_counts_from_zero() -> None:
    after = DraftCounters(output_tokens=30, verify_steps=10)
    assert after.since(DraftCounters(output_tokens=5)) == DraftCounters(output_tokens=25, verify_steps=10)


def test_sources_that_agree_are_shown_side_by_side() -> None:
    records = [record(40, draft_proposed=30, draft_accepted=20), record(60)]
    check = cross_check(records, DraftCounters(100, proposed=30, accepted=20))
    assert check is not None
    assert (check["length"], check["answers_length"], check["answers_share"]) == (1.25, 1.25, 1.0)
    assert check["differs"] is False


def test_a_server_that_counts_otherwise_than_it_answers_is_found_out() -> None:
    records = [record(100, verify_steps=40)]
    assert cross_check(records, DraftCounters(100, verify_steps=40))["differs"] is False  # type: ignore[index]
    wrong = round(40 / (1 + 2 * TOLERANCE))
    assert cross_check(records, DraftCounters(100, verify_steps=wrong))["differs"] is True  # type: ignore[index]


def test_cut_requests_which_the_server_counted_widen_what_is_tolerated() -> None:
    cut = record(20, status="cut")
    records = [record(80, verify_steps=40), cut]
    check = cross_check(records, DraftCounters(100, verify_steps=53))
    assert check is not None and check["answers_share"] == 0.8
    assert check["differs"] is False
    assert cross_check(records, DraftCounters(100, verify_steps=70))["differs"] is True  # type: ignore[index]


def test_answers_whose_tokens_nobody_counted_have_no_acceptance_to_compare() -> None:
    uncounted = replace(record(100, verify_steps=40), output_tokens=None)
    check = cross_check([uncounted], DraftCounters(100, verify_steps=40))
    assert check is not None
    assert (check["length"], check["answers_length"], check["differs"]) == (2.5, None, None)


def test_a_server_that_drafts_nothing_has_no_acceptance_and_not_one_of_1() -> None:
    assert cross_check([record(100)], DraftCounters(100, proposed=0, accepted=0)) is None
    assert cross_check([record(100)], DraftCounters(100)) is None


def test_metrics_tell_of_drafts_that_answers_are_silent_of() -> None:
    check = cross_check([record(100)], DraftCounters(100, verify_steps=50))
    assert check is not None
    assert (check["length"], check["answers_length"], check["differs"]) == (2.0, None, None)


def silent(timeout_seconds: float) -> None:
    """Do not tell what is in flight."""


def run_of(records: list[RequestRecord]) -> dict[str, Any]:
    return {
        "workload": "w",
        "concurrency": 1,
        "windows": [{"begin_seconds": 0.0, "end_seconds": 0.15, "output_tokens": 100}],
        "warmup": {},
        "acceptance": acceptance(records),
        "warnings": [],
    }


def test_requests_the_server_is_still_at_work_on_are_waited_for() -> None:
    busy = DraftCounters(60, proposed=40, accepted=30, in_flight=1)
    done = DraftCounters(100, proposed=60, accepted=50, in_flight=0)
    told = iter([DraftCounters(0, proposed=0, accepted=0), busy, busy, *[done] * 9])
    records = [record(100, draft_proposed=60, draft_accepted=50)]
    with Sampler([], list) as sampler:
        witness = Witness(sampler, lambda: next(told), silent)
        witness.begin()
        witness.testify(run := run_of(records), records)
    assert run["acceptance"]["metrics"]["answers_share"] == 1.0
    assert run["warnings"] == []


def test_a_run_carries_metrics_telemetry_and_the_warning_where_they_differ() -> None:
    told = iter([DraftCounters(0), *[DraftCounters(100, verify_steps=80)] * 9])
    records = [record(100, verify_steps=40)]
    run = run_of(records)
    with Sampler([], lambda: [os.getpid()]) as sampler:
        witness = Witness(sampler, lambda: next(told), silent)
        witness.begin()
        time.sleep(0.15)
        witness.testify(run, records)
    assert run["acceptance"]["metrics"]["length"] == 1.25
    assert run["warnings"] == [
        "acceptance_differs: 2.500 tokens a forward pass by the answers, 1.250 by the server's counters"
    ]
    assert (run["telemetry"]["begin_seconds"], run["telemetry"]["end_seconds"]) == (0.0, 0.15)
    assert run["telemetry"]["samples"] >= 1
    assert witness.runs[0].readings


@pytest.fixture
def speculating(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("PIVOTBENCH_TEST_PYTHON", sys.executable)
    python = scripted.install(tmp_path / "engine", "0.5.16")
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as probe:
        port = probe.server_address[1]
    flags = {"speculative-algorithm": "NGRAM", "speculative-num-draft-tokens": 4, "script-acceptance": "2.5"}
    command = SGLANG.command(str(python), "m", flags, port=port, served_name="ours-1")
    server = subprocess.Popen(command.argv, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + 60
    while SGLANG.probe(url, "ours-1", timeout_seconds=5).state != "ready":
        assert server.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    yield url
    server.kill()
    server.wait()


def test_a_speculating_sglang_shows_the_same_acceptance_in_its_metrics(
    speculating: str, tmp_path: Path
) -> None:
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"id": "p", "prompt": "question"}\n')
    load = {"kind": "text", "prompts": str(prompts), "output_tokens": 40, "concurrency": [1, 4]}
    plan = LoadPlan.from_json(
        {"seconds": 0.3, "windows": 1, "min_requests": 4, "workloads": {"w": load}}, seed="s"
    )
    with Sampler([], list) as sampler:
        witness = Witness(sampler, lambda: SGLANG.draft_counters(speculating), silent)
        outcome = measure(
            speculating,
            SGLANG.dialects,
            "ours-1",
            plan,
            alive=lambda: True,
            progress=lambda _: None,
            witness=witness,
        )
    alone, together = (run["acceptance"]["metrics"] for run in outcome.runs)
    assert alone["answers_share"] == 1.0
    assert alone["length"] == alone["answers_length"] > 2.0
    assert alone["differs"] is together["differs"] is False

"""What differs between two servers beside what was asked: the harmless is listed, the grave not compared."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pivotbench.decision.conditions import Conditions
from pivotbench.decision.fairness import Demand, Serving, confounders, demand_of, unfair
from pivotbench.engines import ENGINES, get_engine
from pivotbench.engines.sglang import effective
from pivotbench.engines.spelling import LLAMACPP_SPELLING, SGLANG_SPELLING
from pivotbench.settings import flat

LOGS = Path(__file__).parents[1] / "data" / "sglang-logs"
ALONE = Demand(1, 200.0)


def served(name: str, **requested: Any) -> Serving:
    """A server of SGLang 0.5.16 as it described itself on an H200."""
    info = json.loads((LOGS / f"{name}.info.json").read_text(encoding="utf-8"))
    return Serving({k.replace("_", "-"): v for k, v in requested.items()}, effective(info))


BASELINE = served("nano-fa3", attention_backend="fa3")
NGRAM = served("nano-ngram", speculative_algorithm="NGRAM", speculative_num_draft_tokens=4)
STANDALONE = served("nano-standalone", speculative_algorithm="STANDALONE")
SMALL = Serving(effective={"max-running-requests": 8})
LARGE = Serving(effective={"max-running-requests": 64})


def test_what_sglang_changes_under_speculation_is_named_once_each_in_plain_words() -> None:
    assert confounders(NGRAM, BASELINE, SGLANG_SPELLING) == (
        "max_running_requests: 48 | 4096 (under speculation SGLang serves 48 requests at once where the "
        "study names no number)",
        "cuda_graph_bs_decode: [1, 2, 3, 4, 5, 6, 7, 8] | [1, 2, 4, 8] (under speculation SGLang records "
        "every batch size, since each request brings several tokens)",
    )
    draft = confounders(STANDALONE, BASELINE, SGLANG_SPELLING)
    assert [line.split(":")[0] for line in draft] == [
        "max_running_requests",
        "max_total_tokens",
        "cuda_graph_bs_decode",
    ]
    assert "max_total_tokens: 69888071 | 87360089 (the draft model" in draft[1]


def test_a_lower_limit_of_requests_matters_only_where_more_are_sent() -> None:
    assert unfair(NGRAM, BASELINE, ALONE, SGLANG_SPELLING) is None
    assert unfair(NGRAM, BASELINE, Demand(8), SGLANG_SPELLING) is None
    assert unfair(SMALL, LARGE, Demand(8), SGLANG_SPELLING) is None
    assert unfair(SMALL, LARGE, Demand(9), SGLANG_SPELLING) == (
        "they serve 8 and 64 requests at once and 9 were sent; "
        "to compare them, serve both with max-running-requests: 9"
    )
    assert unfair(SMALL, SMALL, Demand(9), SGLANG_SPELLING) is None  # both queue alike


def test_replicas_of_a_model_take_their_limit_each() -> None:
    four = Serving(effective={"max-running-requests": 8, "dp-size": 4})
    many = Serving(effective={"max-running-requests": 64, "dp-size": 4})
    assert unfair(four, many, Demand(32), SGLANG_SPELLING) is None
    assert "serve 32 and 256 requests" in str(unfair(four, many, Demand(33), SGLANG_SPELLING))


def test_what_the_study_asked_for_is_no_confounder_under_any_spelling() -> None:
    asked = replace(SMALL, requested={"max-running-requests": 8})
    assert unfair(asked, LARGE, Demand(9), SGLANG_SPELLING) is None
    assert confounders(asked, LARGE, SGLANG_SPELLING) == ()
    alias = {"speculative-algo": "NGRAM", "speculative-algorithm": "NGRAM"}
    none = dict.fromkeys(alias)
    assert (
        confounders(Serving({"speculative-algorithm": "NGRAM"}, alias), Serving({}, none), SGLANG_SPELLING)
        == ()
    )


def test_a_cache_of_tokens_that_one_fills_and_the_other_does_not_is_grave() -> None:
    short, long = (Serving(effective={"max_total_num_tokens": n}) for n in (5_000, 50_000))
    assert unfair(short, long, Demand(4, 1_000.0), SGLANG_SPELLING) is None
    reason = unfair(short, long, Demand(8, 1_000.0), SGLANG_SPELLING)
    assert reason is not None and "hold 5,000 and 50,000 tokens and the load needs 8,000" in reason
    assert unfair(short, long, Demand(80, 1_000.0), SGLANG_SPELLING) is None  # neither holds it
    assert unfair(short, long, Demand(8), SGLANG_SPELLING) is None  # how long requests were is not known


@pytest.mark.parametrize("off", [True, False])
def test_graphs_that_reach_the_load_in_one_alone_are_grave(off: bool) -> None:
    graphs = {"cuda_graph_config": {"decode": {"bs": [1, 2, 4, 8]}}}
    fewer = {"cuda_graph_config": {"decode": {"bs": [1, 2, 4]}}}
    full = Serving(effective={**graphs, "disable_cuda_graph": False})
    less = Serving(effective={**(graphs if off else fewer), "disable_cuda_graph": off})
    assert (unfair(less, full, Demand(1), SGLANG_SPELLING) is not None) is off
    reason = unfair(less, full, Demand(8), SGLANG_SPELLING)
    assert reason is not None and f"reach batches of {0 if off else 4} and 8" in reason
    for flags in (
        {"disable-cuda-graph": True, "cuda-graph-bs-decode": [1, 2, 4]},
        {"cuda-graph-max-bs-decode": 4},
        {"cuda-graph-max-bs": 4},
    ):
        assert unfair(replace(less, requested=flags), full, Demand(8), SGLANG_SPELLING) is None


def test_scheduler_switches_that_differ_by_themselves_are_listed_and_explained_where_known() -> None:
    on = Serving(effective={"disable_overlap_schedule": False, "chunked_prefill_size": 8192})
    off = Serving(
        {"speculative-algorithm": "EAGLE"}, {"disable_overlap_schedule": True, "chunked_prefill_size": 4096}
    )
    assert confounders(off, on, SGLANG_SPELLING) == (
        "chunked_prefill_size: 4096 | 8192",
        "disable_overlap_schedule: True | False (SGLang may turn overlap scheduling off under speculation: "
        "the CPU's work then delays each step)",
    )
    assert unfair(off, on, Demand(64), SGLANG_SPELLING) is None


def test_settings_that_mean_nothing_and_numbers_within_a_hundredth_are_no_difference() -> None:
    one = Serving(effective={"port": 1, "random_seed": 5, "pool": 1000, "flash-attn": "on"})
    other = Serving(effective={"port": 2, "random_seed": 6, "pool": 1001, "flash-attn": "on"})
    assert confounders(one, other, LLAMACPP_SPELLING) == ()


def test_llamacpp_is_held_to_its_own_limits() -> None:
    one, four = (Serving(effective={"parallel": n, "ctx-size": 1024 * n}) for n in (1, 4))
    assert unfair(one, four, Demand(1, 100.0), LLAMACPP_SPELLING) is None
    assert "with parallel: 4" in str(unfair(one, four, Demand(4, 100.0), LLAMACPP_SPELLING))


def test_throttling_is_grave_where_it_lasted_and_slowed_the_clock() -> None:
    cool = Conditions(throttled=(0, 3), sm_clock_mhz=1980.0)
    hot = Conditions(throttled=(2, 3), sm_clock_mhz=1800.0)
    once, mild = replace(hot, throttled=(1, 3)), replace(hot, sm_clock_mhz=1900.0)
    assert "throttled (2 of 3 rounds against 0 of 3 rounds)" in str(hot.unfair_to(cool))
    assert cool.unfair_to(hot) is not None
    assert [each.unfair_to(cool) for each in (once, mild, cool, Conditions())] == [None] * 4
    slow, fast = Conditions(memory_clock_mhz=5001.0), Conditions(memory_clock_mhz=10501.0)
    assert slow.unfair_to(fast) == "memory clocks of 5001 and 10501 MHz"
    pair = Serving(conditions=hot), Serving(conditions=cool)
    assert unfair(*pair, ALONE, SGLANG_SPELLING) is not None
    assert len(confounders(*pair, SGLANG_SPELLING)) == 2


def test_a_saturated_client_and_other_machines_are_listed() -> None:
    a = Serving(client_bound=(1, 3), places={"host": frozenset({"left"})})
    b = Serving(client_bound=(0, 3), places={"host": frozenset({"left", "right"})})
    assert confounders(a, b, SGLANG_SPELLING) == (
        "client_bound: 1 of 3 rounds | 0 of 3 rounds",
        "host: left | left, right",
    )


def test_the_load_is_that_of_the_longest_requests_of_the_metric() -> None:
    row = {"workload": "w", "concurrency": 4, "prompt_tokens": 300, "output_tokens": 100, "requests": 2}
    rows = [row, {**row, "prompt_tokens": 700}, {**row, "workload": "x", "prompt_tokens": 9000}]
    assert demand_of(rows, ["w"], 4) == Demand(4, 400.0)
    assert demand_of([{**row, "prompt_tokens": None}], ["w"], 4) == Demand(4, None)
    assert demand_of(rows, ["w"], 8).tokens is None
    at_a_rate = {**row, "concurrency": None, "in_flight_peak": 9, "prompt_tokens": 900}
    assert demand_of([*rows, at_a_rate], ["w"], None) == Demand(9, 500.0)
    assert demand_of([], ["w"], None) == Demand(1, None)


@given(
    limits=st.tuples(st.integers(1, 64), st.integers(1, 64)),
    pools=st.tuples(st.integers(1, 9999), st.integers(1, 9999)),
    graphs=st.tuples(st.integers(0, 64), st.integers(0, 64)),
    concurrency=st.integers(1, 64),
)
def test_fairness_does_not_depend_on_who_is_named_first(
    limits: tuple[int, int], pools: tuple[int, int], graphs: tuple[int, int], concurrency: int
) -> None:
    one, other = (
        Serving(
            effective={
                "max_running_requests": limits[i],
                "max_total_num_tokens": pools[i],
                "cuda_graph_bs_decode": [graphs[i]],
            }
        )
        for i in (0, 1)
    )
    load = Demand(concurrency, 100.0)
    there, back = unfair(one, other, load, SGLANG_SPELLING), unfair(other, one, load, SGLANG_SPELLING)
    assert (there is None) == (back is None)
    assert unfair(one, one, load, SGLANG_SPELLING) is None
    if min(limits) >= concurrency and min(pools) >= concurrency * 100 and min(graphs) >= concurrency:
        assert there is None


@pytest.mark.parametrize("name", sorted(ENGINES))
def test_every_engine_spells_its_limits_as_its_server_reports_them(name: str) -> None:
    spelling = get_engine(name).spelling
    assert spelling.requests.settings and spelling.tokens.settings
    if name == "sglang":
        told = flat(BASELINE.effective)
        for topic in spelling.topics:
            assert topic.told(told) is not None
        switches = (*spelling.graphs_off, spelling.tensor_parallel, spelling.data_parallel)
        names = (*switches, spelling.dtype, spelling.quantization, spelling.cache_dtype)
        assert {str(each) for each in names} <= told.keys()

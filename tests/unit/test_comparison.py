"""The verdict on a pair."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pivotbench.comparison import Subject, compare, settings_that_differ
from pivotbench.statistics import Noise

QUIET = Noise(0.001, 6)
BASE = Subject("base", {1: 100.0, 2: 100.0}, environments=frozenset({"here"}))


def subject(*speeds: float) -> Subject:
    rounds = dict(enumerate(speeds, start=1))
    return Subject("other", rounds, environments=frozenset({"here"}))


@pytest.mark.parametrize(
    ("speed", "verdict"),
    [(110.0, "faster"), (90.0, "slower"), (100.1, "equivalent"), (101.0, "equivalent"), (101.9, "faster")],
)
def test_verdicts(speed: float, verdict: str) -> None:
    # 101.0 differs from 100 beyond doubt, yet within the margin: too small to matter.
    assert compare(subject(speed, speed), BASE, QUIET, error=0.01, margin=0.02).verdict == verdict


def test_noise_leaves_it_undecided_with_the_rounds_that_would_tell() -> None:
    result = compare(subject(103.0, 103.0), BASE, Noise(0.03, 6), error=0.01, margin=0.02)
    assert result.verdict == "undecided"
    assert result.rounds_needed is not None and result.rounds_needed > 5


def test_a_single_round_decides_nothing_however_far_apart() -> None:
    one = Subject("one", {1: 50.0}, environments=frozenset({"here"}))
    result = compare(one, BASE, QUIET, error=0.05, margin=0.02)
    assert (result.verdict, result.reason) == ("undecided", "a single round decides nothing")


def test_without_any_noise_measured_the_rounds_needed_come_from_a_prior_or_are_unknown() -> None:
    a, b = subject(71.9), replace(BASE, rounds={1: 71.6})
    bare = compare(a, b, None, error=0.05, margin=0.02)
    assert (bare.verdict, bare.ci, bare.rounds_needed) == ("undecided", None, None)
    guided = compare(a, b, None, error=0.05, margin=0.02, prior_sd=0.003)
    assert (guided.verdict, guided.ci) == ("undecided", None)
    assert guided.rounds_needed is not None


def test_different_environments_are_not_comparable() -> None:
    there = replace(subject(110.0, 110.0), environments=frozenset({"there"}))
    assert compare(there, BASE, QUIET, error=0.05, margin=0.02).verdict == "not_comparable"


def test_client_bound_is_the_reason_where_nothing_could_be_ranked() -> None:
    bound = Subject("bound", {}, {1: "client_bound"}, frozenset({"here"}))
    result = compare(bound, BASE, QUIET, error=0.05, margin=0.02)
    assert (result.verdict, result.reason, result.ratio) == ("undecided", "client_bound", None)


def test_settings_nobody_asked_for_are_named() -> None:
    a = Subject(
        "a",
        {},
        requested={"speculative-algorithm": "NEXTN"},
        effective={"speculative_algorithm": "NEXTN", "max_running_requests": 48, "port": 1, "pool": 1000},
    )
    b = Subject(
        "b",
        {},
        effective={"speculative_algorithm": None, "max_running_requests": 256, "port": 2, "pool": 1001},
    )
    assert settings_that_differ(a, b) == ("max_running_requests: 48 | 256",)


def test_nested_settings_are_compared_part_by_part_and_asked_ones_under_every_spelling() -> None:
    """As SGLang reports them: aliases beside each other, graphs nested, and a state for each rank."""

    def graphs(*sizes: int) -> dict[str, object]:
        return {"decode": {"bs": list(sizes), "backend": "full"}}

    base = Subject(
        "base",
        {1: 100.0},
        requested={},
        effective={
            "speculative-algorithm": None,
            "speculative-algo": None,
            "random-seed": 1,
            "cuda-graph-config": graphs(1, 2, 4, 8),
            "internal_states": [
                {"cuda_graph_config": graphs(1, 2, 4, 8), "memory_usage": {"token_capacity": 200}}
            ],
        },
    )
    drafting = Subject(
        "ngram",
        {1: 100.0},
        requested={"speculative-algorithm": "NGRAM"},
        effective={
            "speculative-algorithm": "NGRAM",
            "speculative-algo": "NGRAM",
            "random-seed": 2,
            "cuda-graph-config": graphs(1, 2, 3, 4),
            "internal_states": [
                {"cuda_graph_config": graphs(1, 2, 3, 4), "memory_usage": {"token_capacity": 100}}
            ],
        },
    )
    assert settings_that_differ(base, drafting) == (
        "cuda_graph_config.decode.bs: [1, 2, 4, 8] | [1, 2, 3, 4]",
        "internal_states.0.memory_usage.token_capacity: 200 | 100",
    )

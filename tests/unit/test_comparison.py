"""The verdict on a pair."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from pivotbench.decision.comparison import Subject, Yardstick, compare
from pivotbench.decision.spending import Risk
from pivotbench.decision.statistics import Rounds, fit

HERE = frozenset({"here"})
RISK = Risk.among(0.95, 5, 2, 2)


def subject(name: str, *speeds: float) -> Subject:
    return Subject(name, dict(enumerate(speeds, start=1)), environments=HERE)


def against(other: Subject, sd: float = 0.001, margin: float = 0.02, best: str | None = None) -> Yardstick:
    """How ``other`` and a base of 100 are judged among quieter ones that tell the noise."""
    up, down = 1 + sd, 1 - sd
    crowd = {f"c{i}": {1: at * up, 2: at * down} for i, at in enumerate((80.0, 70.0, 60.0, 50.0, 40.0))}
    crowd |= {f"d{i}": {1: at * down, 2: at * up} for i, at in enumerate((85.0, 75.0, 65.0, 55.0, 45.0))}
    values: dict[str, Rounds] = {**crowd, "base": BASE.rounds, other.configuration: other.rounds}
    return Yardstick(fit({n: v for n, v in values.items() if v}), RISK, margin, best)


BASE = subject("base", 100.0, 100.0)


@pytest.mark.parametrize(
    ("speed", "verdict"),
    [(110.0, "faster"), (90.0, "slower"), (100.1, "equivalent"), (101.0, "equivalent"), (101.9, "faster")],
)
def test_verdicts(speed: float, verdict: str) -> None:
    # 101.0 differs from 100 beyond doubt, yet within the margin: too small to matter.
    other = subject("other", speed, speed)
    assert compare(other, BASE, against(other)).verdict == verdict


@pytest.mark.parametrize("speed", [110.0, 101.0])
def test_the_interval_shows_why_the_verdict_was_given(speed: float) -> None:
    other = subject("other", speed, speed)
    result = compare(other, BASE, against(other))
    assert result.ci is not None
    assert result.ci.inside_margin(0.02) is (result.verdict == "equivalent")
    assert result.verdict == "equivalent" or result.ci.low > 1


def test_equivalence_to_the_best_takes_less_than_equivalence_of_any_two() -> None:
    other = subject("other", 100.6, 100.6)
    verdicts = [compare(other, BASE, against(other, 0.0025, best=best)).verdict for best in ("other", "c0")]
    assert verdicts == ["equivalent", "undecided"]


def test_noise_leaves_it_undecided_with_the_rounds_that_would_tell() -> None:
    other = subject("other", 103.0, 103.0)
    result = compare(other, BASE, against(other, sd=0.03))
    assert result.verdict == "undecided"
    assert result.rounds_needed is not None and result.rounds_needed > 5


def test_a_single_round_decides_nothing_however_far_apart() -> None:
    one = subject("one", 50.0)
    result = compare(one, BASE, against(one))
    assert (result.verdict, result.reason) == ("undecided", "a single round decides nothing")


def test_a_round_set_aside_as_odd_leaves_too_few_and_the_reason_says_so() -> None:
    odd = subject("other", 101.0, 70.0)
    result = compare(odd, BASE, against(odd))
    assert result.verdict == "undecided" and "odd launches are set aside" in str(result.reason)
    assert result.ratio == pytest.approx(1.01, abs=0.002)


def test_without_any_noise_measured_the_rounds_needed_come_from_a_prior_or_are_unknown() -> None:
    a, b = subject("other", 71.9), replace(BASE, rounds={1: 71.6})
    by = Yardstick(fit({"other": a.rounds, "base": b.rounds}), Risk.among(0.95, 2, 2, 5), 0.02)
    bare = compare(a, b, by)
    assert (bare.verdict, bare.ci, bare.rounds_needed) == ("undecided", None, None)
    guided = compare(a, b, replace(by, prior_sd=0.003))
    assert (guided.verdict, guided.ci) == ("undecided", None)
    assert guided.rounds_needed is not None


def test_different_environments_are_not_comparable() -> None:
    there = replace(subject("other", 110.0, 110.0), environments=frozenset({"there"}))
    assert compare(there, BASE, against(there)).verdict == "not_comparable"


def test_the_reason_names_what_differs_between_the_environments() -> None:
    old, new = (json.dumps({"driver": version, "gpus": ["H200", "H200"]}) for version in ("570", "580"))
    there = replace(subject("other", 110.0, 110.0), environments=frozenset({old}))
    here = replace(BASE, environments=frozenset({new}))
    reason = compare(there, here, against(there)).reason
    assert reason == "measured in different environments: driver 570 and 580"


def test_those_that_share_no_round_are_undecided() -> None:
    late = replace(BASE, configuration="late", rounds={3: 50.0, 4: 50.0})
    by = Yardstick(fit({"base": BASE.rounds, "late": late.rounds}), RISK, 0.02)
    result = compare(late, BASE, by)
    assert (result.verdict, result.ratio) == ("undecided", pytest.approx(0.5))


def test_client_bound_is_the_reason_where_nothing_could_be_ranked() -> None:
    bound = Subject("bound", {}, {1: "client_bound"}, HERE)
    result = compare(bound, BASE, against(bound))
    assert (result.verdict, result.reason, result.ratio) == ("undecided", "client_bound", None)

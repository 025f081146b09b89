"""Launches that do not belong to the rest."""

from __future__ import annotations

import math
import random

from pivotbench.decision.oddities import odd_launches, unsteady
from pivotbench.decision.statistics import fit

Values = dict[str, dict[int, float]]


def quiet(names: int = 10, last: int = 3, sd: float = 0.005, seed: int = 3) -> Values:
    rng = random.Random(seed)
    return {
        f"c{i}": {r: (100 - i) * math.exp(rng.gauss(0, sd) + 0.03 * r) for r in range(1, last + 1)}
        for i in range(names)
    }


def hit(values: Values, name: str, round_: int, by: float) -> Values:
    return {**values, name: {**values[name], round_: values[name][round_] * by}}


def test_one_launch_far_below_its_configurations_others_is_set_aside() -> None:
    assert odd_launches(hit(quiet(), "c4", 2, 0.8)) == {("c4", 2)}


def test_a_drift_that_hits_a_whole_round_is_not_odd() -> None:
    assert odd_launches(quiet()) == frozenset()


def test_set_aside_it_changes_neither_the_noise_nor_its_configurations_mean_much() -> None:
    clean, spoilt = fit(quiet()), fit(hit(quiet(), "c4", 2, 0.8))
    assert clean.noise is not None and spoilt.noise is not None
    assert spoilt.noise.sd < 1.3 * clean.noise.sd
    assert abs(math.log(spoilt.mean("c4") / clean.mean("c4"))) < 0.01


def test_of_two_rounds_that_contradict_each_other_the_faster_stays() -> None:
    assert odd_launches(hit(quiet(last=2), "c4", 1, 0.7)) == {("c4", 1)}
    assert odd_launches(hit(quiet(last=2), "c4", 1, 1.4)) == {("c4", 2)}


def test_two_odd_launches_do_not_hide_each_other() -> None:
    both = hit(hit(quiet(), "c4", 2, 0.8), "c7", 3, 0.8)
    assert odd_launches(both) == {("c4", 2), ("c7", 3)}


def test_few_launches_find_nothing_odd() -> None:
    assert odd_launches({"a": {1: 100.0, 2: 100.1, 3: 50.0}, "b": {1: 90.0, 2: 90.1, 3: 90.2}}) == frozenset()


def test_nothing_within_a_hundredth_is_odd_on_however_steady_a_machine() -> None:
    still: Values = {f"c{i}": dict.fromkeys((1, 2, 3), 100.0 - i) for i in range(8)}
    assert odd_launches(hit(still, "c1", 1, 0.995)) == frozenset()
    assert odd_launches(hit(still, "c1", 1, 0.95)) == {("c1", 1)}


def test_a_configuration_with_many_odd_launches_is_unsteady() -> None:
    wild = hit(hit(quiet(last=5), "c4", 2, 0.8), "c4", 3, 1.3)
    assert unsteady(wild, odd_launches(wild)) == {"c4"}
    assert unsteady(quiet(), frozenset({("c4", 1)})) == frozenset()


def test_a_clean_phase_rarely_has_an_odd_launch() -> None:
    found = sum(bool(odd_launches(quiet(12, 5, 0.01, seed))) for seed in range(200))
    assert found <= 10

"""The noise model, its intervals, and what they promise."""

from __future__ import annotations

import math
import random

import pytest

from pivotbench.statistics import (
    Interval,
    Noise,
    bonferroni,
    mean_interval,
    pooled_noise,
    ratio,
    ratio_interval,
    rounds_needed,
    t_quantile,
)


def test_noise_is_pooled_over_configurations_on_the_log_scale() -> None:
    a = {1: math.exp(1.0), 2: math.exp(1.2)}
    b = {1: math.exp(5.0), 2: math.exp(5.1), 3: math.exp(5.2)}
    noise = pooled_noise([a, b, {1: 3.0}])
    assert noise is not None
    assert noise.df == 3
    assert noise.sd == pytest.approx(math.sqrt((0.02 + 0.02) / 3))


def test_one_round_each_says_nothing_about_noise() -> None:
    assert pooled_noise([{1: 71.6}, {1: 71.9}]) is None


def test_the_interval_is_students() -> None:
    # t(0.975, 4 df) = 2.7764 from the printed tables.
    assert t_quantile(0.975, 4) == pytest.approx(2.7764, abs=1e-4)
    a, b = {1: 110.0, 2: 110.0}, {1: 100.0, 2: 100.0}
    centre, n_a, n_b = ratio(a, b)
    interval = ratio_interval(centre, n_a, n_b, Noise(0.01, 4), 0.05)
    assert centre == pytest.approx(1.1)
    assert math.log(interval.high / centre) == pytest.approx(2.7764 * 0.01, abs=1e-6)
    assert interval.low * interval.high == pytest.approx(centre**2)


def test_drift_that_hits_a_round_of_all_leaves_the_ratio_alone() -> None:
    drift = {1: 1.0, 2: 0.9, 3: 0.5}
    a = {n: 100 * d for n, d in drift.items()}
    b = {n: 80 * d for n, d in drift.items() if n < 3}
    centre, *rounds = ratio(a, b)
    assert centre == pytest.approx(1.25)
    assert rounds == [2, 2]


def test_rounds_that_are_not_shared_still_count_where_nothing_else_is_there() -> None:
    centre, *rounds = ratio({1: 90.0, 2: 110.0}, {3: 100.0})
    assert centre == pytest.approx(math.sqrt(0.99))
    assert rounds == [2, 1]


def test_swapping_a_pair_inverts_its_interval() -> None:
    a, b = {1: 101.0, 2: 99.0}, {1: 97.0, 2: 96.0}
    noise = Noise(0.02, 2)
    one = ratio_interval(*ratio(a, b), noise, 0.01)
    other = ratio_interval(*ratio(b, a), noise, 0.01)
    assert [other.low, other.high] == pytest.approx([1 / one.high, 1 / one.low])


@pytest.mark.parametrize(
    ("low", "high", "inside"),
    [(0.99, 1.01, True), (0.99, 1.021, False), (1 / 1.02, 1.02, True), (0.98, 1, False)],
)
def test_equivalence_needs_the_whole_interval_inside_the_margin(
    low: float, high: float, inside: bool
) -> None:
    assert Interval(low, high).inside_margin(0.02) is inside


def test_the_error_is_divided_over_comparisons_and_looks() -> None:
    assert bonferroni(0.95, 6, 2) == pytest.approx(0.05 / 12)
    assert bonferroni(0.95, 0, 1) == pytest.approx(0.05)


def test_intervals_hold_as_often_as_they_promise() -> None:
    rng = random.Random(20260302)
    held = means_held = 0
    trials = 2000
    for _ in range(trials):
        values = [{n: 100 * math.exp(rng.gauss(0, 0.03)) for n in (1, 2, 3)} for _ in range(4)]
        noise = pooled_noise(values)
        assert noise is not None
        interval = ratio_interval(*ratio(values[0], values[1]), noise, 0.10)
        held += interval.low <= 1 <= interval.high
        mean = mean_interval(values[2], noise, 0.10)
        means_held += mean.low <= 100 <= mean.high
    # 90 % promised; four standard errors of a simulation of this size are 2.7 %.
    assert held / trials == pytest.approx(0.90, abs=0.027)
    assert means_held / trials == pytest.approx(0.90, abs=0.027)


def test_the_rounds_said_to_be_needed_mostly_suffice() -> None:
    rng = random.Random(7)
    sd, effect, margin, error = 0.01, 1.03, 0.02, 0.01
    needed = rounds_needed(effect, sd, have=2, others_df=4, error=error, margin=margin)
    assert needed is not None
    rounds = range(1, 2 + needed + 1)
    settled = 0
    for _ in range(500):
        a = {n: effect * math.exp(rng.gauss(0, sd)) for n in rounds}
        b = {n: math.exp(rng.gauss(0, sd)) for n in rounds}
        third = {n: math.exp(rng.gauss(0, sd)) for n in range(5)}
        noise = pooled_noise([a, b, third])
        assert noise is not None
        settled += ratio_interval(*ratio(a, b), noise, error).low > 1
    assert 0.70 <= settled / 500 <= 0.95


def test_noisier_launches_need_more_rounds() -> None:
    quiet, loud = (rounds_needed(1.004, sd, 1, 4, 0.05, 0.02) for sd in (0.003, 0.03))
    assert quiet is not None and loud is not None
    assert quiet < 5 < loud

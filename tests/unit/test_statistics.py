"""The noise model, its intervals, and what they promise."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

import pytest

from pivotbench.decision.spending import Risk
from pivotbench.decision.statistics import (
    Difference,
    Fit,
    Interval,
    Noise,
    chance_above_margin,
    chances_to_settle,
    fit,
    mean_interval,
    pooled_noise,
    rounds_needed,
    t_quantile,
)

ALONE = Risk(0.95, pairs=1, rivals=1, first=2, last=5)


def difference(fitted: Fit, a: str, b: str) -> Difference:
    found = fitted.difference(a, b)
    assert found is not None
    return found


def rounds(values: Mapping[str, Sequence[float]]) -> dict[str, dict[int, float]]:
    return {name: dict(enumerate(speeds, start=1)) for name, speeds in values.items()}


def launched(
    rng: random.Random, names: int, last: int, sd: float, drift: float
) -> dict[str, dict[int, float]]:
    """Every configuration at the same speed, each round hit by a drift that is common to all."""
    hit = {r: rng.gauss(0, drift) for r in range(1, last + 1)}
    return {
        f"c{i}": {r: 100 * math.exp(hit[r] + rng.gauss(0, sd)) for r in range(1, last + 1)}
        for i in range(names)
    }


def test_noise_of_a_level_is_pooled_over_configurations_on_the_log_scale() -> None:
    a = {1: math.exp(1.0), 2: math.exp(1.2)}
    b = {1: math.exp(5.0), 2: math.exp(5.1), 3: math.exp(5.2)}
    noise = pooled_noise([a, b, {1: 3.0}])
    assert noise is not None
    assert noise.df == 3
    assert noise.sd == pytest.approx(math.sqrt((0.02 + 0.02) / 3))


def test_one_round_each_says_nothing_about_noise() -> None:
    assert fit({"a": {1: 71.6}, "b": {1: 71.9}}).noise is None


def test_the_interval_is_students() -> None:
    # t(0.975, 4 df) = 2.7764 from the printed tables.
    assert t_quantile(0.975, 4) == pytest.approx(2.7764, abs=1e-4)
    interval = Difference(math.log(1.1), 1.0, 2).interval(Noise(0.01, 4), 0.025)
    assert math.log(interval.high / 1.1) == pytest.approx(2.7764 * 0.01, abs=1e-6)
    assert interval.low * interval.high == pytest.approx(1.1**2)


def test_drift_that_hits_a_round_of_all_leaves_ratios_alone_and_is_no_noise() -> None:
    drift = (1.0, 0.9, 0.5, 0.7)
    speeds = rounds(
        {name: [at * d for d in drift] for name, at in zip("abcde", range(100, 50, -10), strict=True)}
    )
    del speeds["b"][3], speeds["b"][4]
    fitted = fit(speeds)
    assert difference(fitted, "a", "b").ratio == pytest.approx(100 / 90)
    assert fitted.noise is not None and fitted.noise.df == 18 - 5 - 3
    assert fitted.noise.sd < 1e-9


def test_where_few_launches_are_there_a_drift_counts_as_noise() -> None:
    noise = fit(rounds({"a": (100, 110), "b": (80, 88)})).noise
    assert noise is not None and noise.df == 2
    assert noise.sd == pytest.approx(math.log(1.1) / math.sqrt(2))


def test_rounds_that_are_not_shared_cost_precision() -> None:
    together = fit({"a": {1: 90.0, 2: 91.0}, "b": {1: 80.0, 2: 81.0}, "c": {1: 70.0, 2: 71.0, 3: 70.5}})
    apart = fit({"a": {1: 90.0, 2: 91.0}, "b": {2: 80.0, 3: 81.0}, "c": {1: 70.0, 2: 71.0, 3: 70.5}})
    assert difference(together, "a", "b").factor == pytest.approx(1.0)
    assert difference(apart, "a", "b").factor > 1.2


def test_configurations_without_a_chain_of_shared_rounds_have_no_ratio() -> None:
    fitted = fit({"a": {1: 90.0, 2: 110.0}, "b": {3: 100.0, 4: 101.0}})
    assert fitted.difference("a", "b") is None


def test_the_fit_is_that_of_a_regression_on_configurations_and_rounds() -> None:
    import numpy as np

    rng = random.Random(4)
    cells = {(n, r): rng.gauss(0, 1) for n in "abcdef" for r in range(6) if rng.random() < 0.8}
    values: dict[str, dict[int, float]] = {}
    for (n, r), y in cells.items():
        values.setdefault(n, {})[r] = math.exp(y)
    columns = [("abcdef".index(n), 6 + r) for n, r in cells]
    design = np.array([[float(c in pair) for c in range(12)] for pair in columns])
    solution, _, rank, _ = np.linalg.lstsq(design, np.array(list(cells.values())), rcond=None)
    residual = np.array(list(cells.values())) - design @ solution
    covariance = np.linalg.pinv(design.T @ design)
    fitted = fit(values)
    found = difference(fitted, "a", "c")
    contrast = np.array([1, 0, -1] + [0] * 9)
    assert found.log == pytest.approx(solution[0] - solution[2])
    assert found.factor == pytest.approx(contrast @ covariance @ contrast)
    assert fitted.noise is not None and fitted.noise.df == len(cells) - rank
    assert fitted.noise.sd == pytest.approx(math.sqrt(residual @ residual / fitted.noise.df))


def test_swapping_a_pair_inverts_its_interval() -> None:
    fitted = fit(rounds({"a": (101.0, 99.0), "b": (97.0, 96.0)}))
    assert fitted.noise is not None
    one, other = (difference(fitted, *pair).interval(fitted.noise, 0.005) for pair in ("ab", "ba"))
    assert [other.low, other.high] == pytest.approx([1 / one.high, 1 / one.low])


@pytest.mark.parametrize(
    ("low", "high", "inside"),
    [(0.99, 1.01, True), (0.99, 1.021, False), (1 / 1.02, 1.02, True), (0.98, 1, False)],
)
def test_equivalence_needs_the_whole_interval_inside_the_margin(
    low: float, high: float, inside: bool
) -> None:
    assert Interval(low, high).inside_margin(0.02) is inside


@pytest.mark.parametrize(("names", "drift"), [(8, 0.02), (3, 0.0)])
def test_intervals_hold_as_often_as_they_promise(names: int, drift: float) -> None:
    rng = random.Random(20260302)
    held = means_held = 0
    trials = 800
    for _ in range(trials):
        fitted = fit(launched(rng, names, 3, 0.003, drift))
        assert fitted.noise is not None
        interval = difference(fitted, "c0", "c1").interval(fitted.noise, 0.05)
        held += interval.low <= 1 <= interval.high
        level = pooled_noise(fitted.used.values())
        assert level is not None
        mean = mean_interval(fitted.mean("c2"), 3, level, 0.10)
        means_held += mean.low <= 100 <= mean.high
    # 90 % promised; four standard errors of a simulation of this size are 4.2 %.
    assert held / trials == pytest.approx(0.90, abs=0.042)
    if not drift:
        assert means_held / trials == pytest.approx(0.90, abs=0.042)


def test_the_rounds_said_to_be_needed_mostly_suffice() -> None:
    rng = random.Random(7)
    sd, effect, margin = 0.01, 1.03, 0.02
    found, noise = Difference(math.log(effect), 1.0, 2), Noise(sd, 8)
    needed = rounds_needed(found, noise, ALONE, margin, to_best=True)
    assert needed is not None
    settled = 0
    for _ in range(300):
        values = launched(rng, 4, 2 + needed, sd, 0.01)
        values["c0"] = {r: v * effect for r, v in values["c0"].items()}
        fitted = fit(values)
        assert fitted.noise is not None
        result = difference(fitted, "c0", "c1")
        settled += result.interval(fitted.noise, ALONE.difference(2 + needed)).low > 1
    assert 0.70 <= settled / 300 <= 0.95


def test_noisier_launches_need_more_rounds() -> None:
    found = Difference(math.log(1.004), 2.0, 1)
    quiet, loud = (rounds_needed(found, Noise(sd, 4), ALONE, 0.02, to_best=True) for sd in (0.003, 0.03))
    assert quiet is not None and loud is not None
    assert quiet < 5 < loud


def test_the_chances_to_settle_are_the_shares_of_futures_that_settle() -> None:
    rng = random.Random(11)
    noise, risk, margin = Noise(0.006, 400), Risk.among(0.95, 10, 2, 5), 0.02
    now, have, horizon = 0.0105, 3, 5
    inside = t_quantile(1 - risk.equivalence(horizon, to_best=True), 400)
    se = noise.sd * math.sqrt(2 / horizon)
    same = apart = 0
    for _ in range(4000):
        truth = rng.gauss(now, noise.sd * math.sqrt(2 / have))
        later = rng.gauss(truth, noise.sd * math.sqrt(2 / (horizon - have)))
        seen = (have * now + (horizon - have) * later) / horizon
        apart += abs(seen) > t_quantile(1 - risk.difference(horizon), 400) * se
        same += abs(seen) + inside * se <= math.log1p(margin)
    told = chances_to_settle(Difference(now, 2 / have, have), noise, risk, margin, horizon, to_best=True)
    assert told == pytest.approx((same / 4000, apart / 4000), abs=0.03)
    assert min(same, apart) > 200
    assert chances_to_settle(Difference(now, 0.4, 5), noise, risk, margin, 5, to_best=True) == (0, 0)


def test_who_is_ahead_by_the_margin_may_be_better_by_more_with_even_chances() -> None:
    assert chance_above_margin(Difference(math.log(1.02), 1.0, 2), Noise(0.01, 5), 0.02) == pytest.approx(0.5)
    assert chance_above_margin(Difference(0.0, 1.0, 2), Noise(0.005, 50), 0.02) < 0.001


def test_the_interval_of_a_mean_is_finite_however_noisy_and_sure() -> None:
    noise = pooled_noise([{1: 100.0, 2: 150.0}])
    assert noise is not None
    interval = mean_interval(100.0, 2, noise, 1 - 0.99999)
    assert 0 <= interval.low < 100 < interval.high < math.inf

"""Two series of launches that were not run together: what their noise is, and how often verdicts err."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping

import pytest

from pivotbench.changes.series import Series, apart, series
from pivotbench.decision.comparison import settle
from pivotbench.decision.spending import Risk

NAMES = ("a", "b", "c", "d")
DRIFTING = {
    name: {r: 100 * scale * 1.1**r for r in (1, 2, 3)} for name, scale in zip(NAMES, range(1, 5), strict=True)
}


def drawn(rng: random.Random, round_sd: float, launch_sd: float, rounds: int) -> Series:
    drift = [rng.gauss(0, round_sd) for _ in range(rounds)]
    return series(
        {
            name: {r + 1: 100 * math.exp(drift[r] + rng.gauss(0, launch_sd)) for r in range(rounds)}
            for name in NAMES
        }
    )


def test_where_rounds_do_all_only_they_count_as_evidence() -> None:
    noise = series(DRIFTING).noise
    assert noise is not None
    assert noise.df == 2, (
        "three rounds are three looks at the machine, however many configurations ran in each"
    )
    assert noise.sd == pytest.approx(math.log(1.1))


def test_where_rounds_do_nothing_every_launch_counts() -> None:
    rng = random.Random(7)
    dfs = [noise.df for _ in range(50) if (noise := drawn(rng, 0.0, 0.01, 3).noise)]
    assert 6 <= sum(dfs) / len(dfs) <= 8, "of four configurations in three rounds there are eight"


def test_a_drift_within_a_folder_widens_what_is_said_across_folders() -> None:
    steady = series({name: {1: 100.0, 2: 101.0, 3: 99.0} for name in NAMES[:1]})
    pairs = [apart(series(DRIFTING), "a", steady, "a"), apart(steady, "a", steady, "a")]
    widths = [found.interval(noise, 0.05) for found, noise in pairs if noise]
    assert widths[0].high / widths[0].low > 1.2 > widths[1].high / widths[1].low


def test_launches_of_each_folder_have_a_noise_of_their_own() -> None:
    noisy = series({"a": {1: 90.0, 2: 110.0, 3: 100.0}})
    calm = series({"a": {1: 100.0, 2: 100.1, 3: 99.9}})
    _, noise = apart(noisy, "a", calm, "a")
    assert noise is not None
    assert noise.df == 2, "Welch: the calm folder's launches say nothing of the noisy one's"


def test_folders_without_relaunches_decide_nothing() -> None:
    once = series({"a": {1: 100.0}})
    found, noise = apart(once, "a", series(DRIFTING), "a")
    risk = Risk.against_baseline(0.95, 1, 2, 2)
    assert settle(("new a", "old a"), found, noise, risk, 0.02).verdict == "undecided"


def test_equal_launches_are_equivalent_and_not_an_error() -> None:
    still = series({"a": {1: 100.0, 2: 100.0}})
    found, noise = apart(still, "a", still, "a")
    assert (
        settle(("x", "y"), found, noise, Risk.against_baseline(0.95, 1, 2, 2), 0.02).verdict == "equivalent"
    )


def errors(judge: Callable[[random.Random], bool], trials: int) -> float:
    rng = random.Random(11)
    return sum(judge(rng) for _ in range(trials)) / trials


@pytest.mark.parametrize("round_sd", [0.0, 0.01, 0.03])
def test_of_unchanged_folders_no_more_families_err_than_the_confidence_allows(round_sd: float) -> None:
    risk = Risk.against_baseline(0.9, len(NAMES), 2, 2)

    def wrong(rng: random.Random) -> bool:
        old, new = (drawn(rng, round_sd, 0.01, 3) for _ in range(2))
        verdicts = [settle((n, n), *apart(new, n, old, n), risk, 0.001).verdict for n in NAMES]
        return "faster" in verdicts or "slower" in verdicts

    # Three standard errors of 500 trials above the ten per cent that were promised.
    assert errors(wrong, 500) <= 0.1 + 3 * math.sqrt(0.1 * 0.9 / 500)


def test_a_change_of_many_standard_errors_is_found() -> None:
    risk = Risk.against_baseline(0.95, len(NAMES), 2, 2)
    rng = random.Random(3)
    old, new = drawn(rng, 0.002, 0.002, 3), drawn(rng, 0.002, 0.002, 3)
    slower: Mapping[str, Mapping[int, float]] = {
        n: {r: 0.9 * v for r, v in x.items()} for n, x in new.used.items()
    }
    assert settle(("x", "y"), *apart(series(slower), "a", old, "a"), risk, 0.02).verdict == "slower"

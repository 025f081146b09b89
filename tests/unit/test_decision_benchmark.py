"""The simulation's own rules: what is false, what is met, what never passes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from benchmarks.decision.law import LAWS, SPREADS, world
from benchmarks.decision.methods import METHODS, is_false, never
from benchmarks.decision.targets import Tally, misses, tallied

GOOD = Tally(
    200, false=0.0, within_margin=1.0, within_one=1.0, gpu_seconds=4.0, undecided=0.1, equal=0.9, gap=1.0
)
PLACES = [(law, str(spread)) for law in LAWS for spread in SPREADS]
SWEEPS = dict.fromkeys(PLACES, 10.0)


def test_every_target_can_be_met_and_each_can_be_missed() -> None:
    assert misses(dict.fromkeys(PLACES, GOOD), SWEEPS) == []
    for change in (
        {"false": 0.06},
        {"within_margin": 0.9},
        {"equal": 0.7},
        {"gap": 0.8},
        {"gpu_seconds": 6.0},
    ):
        assert misses(dict.fromkeys(PLACES, replace(GOOD, **change)), SWEEPS), change


def test_always_saying_undecided_misses() -> None:
    score = METHODS["pivotbench"](world("known", SPREADS[0], 1))
    idle = tallied([never(score)])
    assert any("equals" in line for line in misses(dict.fromkeys(PLACES, idle), SWEEPS))


def test_what_contradicts_the_truth_is_false_and_undecided_never_is() -> None:
    there = world("known", SPREADS[0], 1)
    fast = sorted(n for n, v in there.truth.items() if v == 0)
    slow = next(n for n, v in there.truth.items() if v < 0)
    assert is_false(there, {(fast[0], fast[1]): "slower"})
    assert is_false(there, {(slow, fast[0]): "equivalent"})
    assert is_false(there, {(slow, fast[0]): "faster"})
    right = {(slow, fast[0]): "slower", (fast[0], fast[1]): "equivalent", (fast[2], slow): "undecided"}
    assert not is_false(there, right)


@pytest.mark.parametrize("method", METHODS)
def test_a_campaign_is_the_same_every_time(method: str) -> None:
    assert METHODS[method](world("uniform", SPREADS[1], 3)) == METHODS[method](
        world("uniform", SPREADS[1], 3)
    )

"""What must not change a verdict, for campaigns drawn at random."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from campaigns import CHAT_RULES
from factory import GARBAGE, UNSUPPORTED, Cell, cell_files
from pivotbench.decision.classes import classes
from pivotbench.decision.contest import Contest, contest

Speeds = dict[str, list[float]]
RULES = replace(CHAT_RULES, rounds_min=2, rounds_max=4)

few = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def campaigns(draw: Callable[..., Any]) -> Speeds:
    """Two to nine configurations in up to four rounds, some of them rounds short; no two means alike."""
    count, rounds = draw(st.integers(2, 9)), draw(st.integers(2, 4))
    rng = random.Random(draw(st.integers(0, 2**32)))
    sd = draw(st.sampled_from([0.001, 0.004, 0.02]))
    spread = draw(st.sampled_from([0.01, 0.1]))
    speeds = {}
    for i in range(count):
        centre = 100 * (1 - rng.random() * spread)
        ran = draw(st.integers(2, rounds)) if i else rounds
        speeds[f"c{i}"] = [centre * (1 + rng.gauss(0, sd)) for _ in range(ran)]
    return speeds


def judged(speeds: Mapping[str, Sequence[float]], more: Sequence[Cell] = ()) -> Contest:
    made = [
        Cell("backends", name, r, {("chat", 1): speed})
        for name, values in speeds.items()
        for r, speed in enumerate(values, start=1)
    ]
    return contest(RULES, "backends", [cell_files(c) for c in [*made, *more]])


def verdicts(state: Contest) -> dict[tuple[str, str], str]:
    return {(a, b): state.verdict(a, b) for a in state.ranked for b in state.ranked if a != b}


@few
@given(campaigns())
def test_names_change_nothing(speeds: Speeds) -> None:
    other = {name: f"z{9 - int(name[1:])}" for name in speeds}
    renamed = judged({other[name]: values for name, values in speeds.items()})
    plain = judged(speeds)
    assert verdicts(renamed) == {(other[a], other[b]): v for (a, b), v in verdicts(plain).items()}
    assert renamed.ranked == tuple(other[name] for name in plain.ranked)


@few
@given(campaigns())
def test_who_is_equivalent_is_told_by_the_verdict_on_every_pair(speeds: Speeds) -> None:
    state = judged(speeds)
    for (a, b), verdict in verdicts(state).items():
        assert state.equivalent(a, b) == (verdict == "equivalent")


@few
@given(campaigns(), st.sampled_from([1 / 3600, 3600.0, 0.37]))
def test_units_change_nothing(speeds: Speeds, unit: float) -> None:
    scaled = judged({name: [v * unit for v in values] for name, values in speeds.items()})
    assert verdicts(scaled) == verdicts(judged(speeds))


@few
@given(campaigns())
def test_order_changes_nothing(speeds: Speeds) -> None:
    assert verdicts(judged(dict(reversed(speeds.items())))) == verdicts(judged(speeds))


@few
@given(campaigns(), st.sampled_from([("launch", UNSUPPORTED), ("smoke", GARBAGE), ("throughput", GARBAGE)]))
def test_a_dead_configuration_changes_nothing(speeds: Speeds, how: tuple[Any, Any]) -> None:
    dead = Cell("backends", "dead", 1, {("chat", 1): 500.0}, failed=how[0], reason=how[1])
    assert verdicts(judged(speeds, [dead])) == verdicts(judged(speeds))


@few
@given(campaigns())
def test_a_pair_seen_from_the_other_side_has_the_opposite_verdict(speeds: Speeds) -> None:
    found = verdicts(judged(speeds))
    turn = {"faster": "slower", "slower": "faster"}
    assert all(found[b, a] == turn.get(verdict, verdict) for (a, b), verdict in found.items())


@few
@given(campaigns())
def test_classes_part_the_ranked_and_never_contradict_a_verdict(speeds: Speeds) -> None:
    state = judged(speeds)
    groups = list(classes(state))
    members = [name for group in groups for name in group["members"]]
    assert sorted(members) == sorted(state.ranked)
    for group in groups:
        leader = group["leader"]
        assert all(state.verdict(name, leader) == "equivalent" for name in group["members"][1:])
    for number, group in enumerate(groups):
        for earlier in groups[:number]:
            assert all(state.verdict(n, earlier["leader"]) != "equivalent" for n in group["members"])

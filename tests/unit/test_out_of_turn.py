"""Rounds that were not measured side by side: who is named, and who is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from campaigns import CHAT_RULES, run_phase
from factory import GARBAGE, Cell, noisy
from pivotbench.decision.decide import decide
from pivotbench.decision.fairness import Serving, confounders
from pivotbench.decision.out_of_turn import Begun, late, late_pairs, side_by_side
from pivotbench.engines.spelling import LLAMACPP_SPELLING
from unit.test_next_levers import loads

DAYS_LATER = 72.0
SPEEDS = {"f16": 208.0, "q8": 100.0, "slow": 60.0}


def at(*hours: float | None) -> Begun:
    """When rounds 1, 2, ... began, by the hour of one day; None: that round was not measured."""
    day = datetime(2026, 3, 2, tzinfo=UTC)
    return {n: day.replace(hour=int(h)) for n, h in enumerate(hours, start=1) if h is not None}


def decided(late_hours: Mapping[tuple[str, int], float], rounds: int = 2, **more: Any) -> dict[str, Any]:
    """The decision on so many rounds of three configurations, some cells made so much later than in turn."""

    def make(_: str, names: Sequence[str], round_: int) -> list[Cell]:
        return [
            Cell(
                "backends",
                name,
                round_,
                {("chat", 1): noisy(SPEEDS[name], 0.003, name, round_)},
                late_hours=late_hours.get((name, round_), 0.0),
                **more,
            )
            for name in names
        ]

    rules = replace(CHAT_RULES, rounds_min=rounds, rounds_max=rounds)
    return decide(rules, *run_phase(rules, "backends", list(SPEEDS), make))


def told(decision: Mapping[str, Any]) -> str | None:
    return next((t["message"] for t in decision["threats"] if t["code"] == "out_of_turn"), None)


def apart(decision: Mapping[str, Any]) -> set[frozenset[str]]:
    """The pairs with a confounder of that kind."""
    return {
        frozenset((row["a"], row["b"]))
        for row in decision["comparisons"]
        if any(each.startswith("out of turn: ") for each in row["confounders"])
    }


def lever(decision: Mapping[str, Any]) -> dict[str, str] | None:
    return next((each for each in decision["next_levers"] if "side by side" in each["lever"]), None)


REMADE = {("f16", 1): DAYS_LATER, ("f16", 2): DAYS_LATER}


def test_a_configuration_measured_anew_after_the_others_last_round_is_named_with_every_pair() -> None:
    decision = decided(REMADE)
    message = told(decision)
    assert message is not None and message.startswith(
        "f16 had rounds measured after later rounds of q8 and slow"
    )
    assert apart(decision) == {frozenset(("f16", "q8")), frozenset(("f16", "slow"))}
    row = next(row for row in decision["comparisons"] if {row["a"], row["b"]} == {"f16", "q8"})
    assert row["a"] == "q8" and row["confounders"] == [
        "out of turn: round 2 at 2026-03-02 10:00:03 UTC | round 1 at 2026-03-05 09:00:03 UTC"
    ]


def test_verdicts_are_the_same_in_turn_and_out_of_it() -> None:
    def verdicts(decision: Mapping[str, Any]) -> list[Any]:
        return [[row[key] for key in ("a", "b", "verdict", "ratio", "ci")] for row in decision["comparisons"]]

    assert verdicts(decided(REMADE)) == verdicts(decided({}))


@pytest.mark.parametrize(
    "late_hours",
    [
        {},
        {("f16", 1): 0.9},  # tried again before the round was whole
        {("f16", 2): DAYS_LATER},  # the last round alone: no later one has begun before it
        {(name, 1): DAYS_LATER for name in SPEEDS},  # a round made anew for all is still one round
    ],
    ids=["undisturbed", "tried again within the round", "the last round", "a whole round"],
)
def test_nobody_is_named_where_rounds_are_side_by_side(late_hours: dict[tuple[str, int], float]) -> None:
    decision = decided(late_hours)
    assert told(decision) is None and not apart(decision) and lever(decision) is None


def test_of_a_single_round_nothing_can_be_told() -> None:
    assert told(decided({("f16", 1): DAYS_LATER}, rounds=1)) is None


def test_a_configuration_that_never_worked_is_out_of_turn_against_nobody() -> None:
    assert told(decided(REMADE, failed="smoke", reason=GARBAGE)) is None


def test_the_rounds_that_measure_them_side_by_side_are_the_next_lever_until_they_ran() -> None:
    found = lever(decided(REMADE))
    assert found is not None and found["lever"] == "measure f16, q8 and slow side by side"
    assert yaml.safe_load(found["snippet"]) == {"decision": {"rounds": {"min": 4, "max": 4}}}
    loads(found, "llamacpp")
    once_more = lever(
        decided(REMADE | {("f16", 3): DAYS_LATER, ("q8", 3): DAYS_LATER, ("slow", 3): DAYS_LATER}, 3)
    )
    assert once_more is not None and yaml.safe_load(once_more["snippet"])["decision"]["rounds"]["min"] == 4
    after = REMADE | {(name, n): DAYS_LATER for name in SPEEDS for n in (3, 4)}
    assert lever(decided(after, 4)) is None
    assert told(decided(after, 4)) is not None, "the old rounds are still in the ratio"


def test_only_the_order_counts_and_only_one_of_a_pair_is_late() -> None:
    old, anew = at(1, 2), at(8, 9)
    assert late(anew, old) == (1, 2) and late(old, anew) is None
    assert late(at(1, 3), at(2, 4)) is None
    assert late(at(4), at(1, 2, 3)) == (1, 2), "one that was added later, by the rounds farthest apart"
    assert late(at(8, 2), at(9, 3)) is late(at(9, 3), at(8, 2)) is None, "round 1 of both, anew"
    assert late(at(9, 10, 11), at(12, 2, 3)) == (2, 3), "made anew twice, which does not make it side by side"
    assert late(at(8), at(None, 2)) == (1, 2)


def test_rounds_side_by_side_are_those_in_turn_against_all_rounds_of_the_other() -> None:
    assert side_by_side(at(1, 3), at(2, 4)) == 2
    assert side_by_side(at(8, 9), at(1, 2)) == side_by_side(at(1, 2), at(8, 9)) == 0
    assert side_by_side(at(8, 9, 12, 14), at(1, 2, 11, 13)) == 2


def test_who_is_late_is_found_among_many_as_it_is_in_each_pair() -> None:
    begun = {"a": at(1, 4), "b": at(2, 5), "late": at(8, 9), "added": at(10), "once": at(3)}
    pairs = {(a, b) for a in begun for b in begun if a != b and late(begun[a], begun[b])}
    assert (
        set(late_pairs(begun))
        == pairs
        == {
            *(("late", name) for name in ("a", "b")),
            *(("added", name) for name in ("a", "b", "late")),
        }
    )


def test_a_pair_out_of_turn_is_confounded_whoever_is_named_first() -> None:
    one, other = Serving(begun=at(8, 9)), Serving(begun=at(1, 2))
    (there,), (back,) = (confounders(*pair, LLAMACPP_SPELLING) for pair in ((one, other), (other, one)))
    assert there == "out of turn: round 1 at 2026-03-02 08:00:00 UTC | round 2 at 2026-03-02 02:00:00 UTC"
    assert back == "out of turn: round 2 at 2026-03-02 02:00:00 UTC | round 1 at 2026-03-02 08:00:00 UTC"

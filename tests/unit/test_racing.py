"""Who runs again, when a phase ends, and what the base is."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from campaigns import CHAT_RULES as RULES
from campaigns import run_phase
from factory import GARBAGE, UNSUPPORTED, Cell, cell_files
from pivotbench.decision.racing import judge_round
from pivotbench.evidence import CellFiles
from pivotbench.results import Reason
from pivotbench.turns import round_order

TIMEOUT = Reason.of("timeout", "no answer in 60 s")


def cells(speeds: Mapping[str, Sequence[float]], phase: str = "backends") -> list[CellFiles]:
    return [
        cell_files(Cell(phase, name, n, {("chat", 1): speed}))
        for name, values in speeds.items()
        for n, speed in enumerate(values, start=1)
    ]


def race(speeds: Mapping[str, Sequence[float]], *, phase: str = "backends", **more: Any) -> dict[str, Any]:
    """Judge the last round, everyone having been asked for every round before."""
    rounds = max(map(len, speeds.values()))
    earlier = [_asked(phase, n, list(speeds)) for n in range(1, rounds)]
    rules = more.pop("rules", RULES)
    found = cells(speeds, phase) + more.pop("extra", [])
    return judge_round(rules, phase, rounds, found, earlier, **more)


def _asked(phase: str, n: int, names: list[str]) -> dict[str, Any]:
    return {"phase": phase, "round": n, "next": names, "eliminated": [], "noise": None, "base": None}


def test_after_the_first_round_everyone_healthy_runs_again_however_slow() -> None:
    broken = [cell_files(Cell("backends", "dead", 1, failed="launch", reason=UNSUPPORTED))]
    result = race({"a": [100], "b": [50]}, extra=broken)
    assert set(result["next"]) == {"a", "b"}
    assert not result["ended"] and result["base"] is None
    assert result["eliminated"] == ["dead"]


def test_losers_and_equals_stop_while_the_undecided_run_on_with_the_best() -> None:
    # With this noise an interval reaches 1 % to each side.
    spread = {"best": 1.0, "equal": 1.0002, "close": 0.994, "loser": 0.8}
    result = race(
        {name: (100 * at * 0.999, 100 * at * 1.001) for name, at in spread.items()},
        rules=replace(RULES, margin=0.012),
    )
    assert {s["configuration"]: s["verdict"] for s in result["standings"]} == {
        "equal": "best",
        "best": "equivalent",
        "close": "undecided",
        "loser": "slower",
    }
    assert set(result["next"]) == {"equal", "close"}


def test_undecided_pairs_run_again_both() -> None:
    result = race({"a": [100, 104], "b": [99, 103], "loser": [50, 51]})
    assert set(result["next"]) == {"a", "b"}
    assert result["why"] == "undecided: b"


def test_rounds_in_which_part_of_the_load_always_failed_are_not_ranked_and_not_asked_for_again() -> None:
    turn = "turn 2 of the conversations (9 times: HTTP 400: too long)"
    broken = [Cell("backends", "b", n, {("chat", 1): 120 + n}, unanswered=[turn]) for n in (1, 2)]
    result = race({"a": [100, 100.1], "c": [50, 50.1]}, extra=[cell_files(c) for c in broken])
    standing = {s["configuration"]: s for s in result["standings"]}["b"]
    assert (standing["mean_tok_s"], standing["reason"]) == (None, "unanswered")
    assert result["ended"] and result["base"] == "a"


def crowd(sd: float, spread: float) -> dict[str, tuple[float, float]]:
    rng = random.Random(12)
    at = {f"c{i}": 100 * (1 - spread * i / 9) for i in range(10)}
    return {n: (v * math.exp(rng.gauss(0, sd)), v * math.exp(rng.gauss(0, sd))) for n, v in at.items()}


def test_who_would_hardly_be_settled_nor_be_the_better_choice_stops_undecided() -> None:
    result = race(crowd(sd=0.03, spread=0.10))
    verdicts = {s["configuration"]: s["verdict"] for s in result["standings"]}
    stopped = set(verdicts) - set(result["next"])
    assert stopped and {verdicts[n] for n in stopped} <= {"undecided", "slower"}
    assert result["next"] and "hardly decide" in result["why"]


def test_quiet_launches_run_on_until_equals_are_shown_to_be_so() -> None:
    result = race(crowd(sd=0.0035, spread=0.0))
    verdicts = {s["configuration"]: s["verdict"] for s in result["standings"]}
    open_ = {n for n, v in verdicts.items() if v == "undecided"}
    assert open_ and open_ < set(result["next"])


def test_the_phase_ends_when_nothing_is_undecided() -> None:
    result = race({"a": [100, 100.1], "b": [80, 80.1]})
    assert (result["ended"], result["next"], result["base"]) == (True, [], "a")


def test_the_phase_ends_at_the_limit_and_says_what_stays_open() -> None:
    result = race({"a": [100, 104], "b": [99, 103]}, rules=replace(RULES, rounds_max=2))
    assert result["ended"]
    assert "limit of 2 rounds" in result["why"] and "b" in result["why"]
    assert result["base"] == "a"


def test_the_phase_ends_before_a_round_that_would_exceed_the_budget() -> None:
    # A cell takes 22 s, so two rounds of two on eight GPUs are 0.196 GPU-hours, three 0.293.
    close = {"a": [100, 104], "b": [99, 103]}
    poor, rich = (race(close, rules=replace(RULES, gpus=8, gpu_hours=h)) for h in (0.25, 0.30))
    assert poor["ended"] and poor["base"] == "a"
    assert poor["why"].startswith("budget of 0.25 GPU-hours: 0.20 are spent")
    assert set(rich["next"]) == {"a", "b"}


def test_what_the_first_phase_spent_counts_against_the_budget_of_the_second() -> None:
    rules = replace(RULES, gpus=8, gpu_hours=0.30)
    one = {"phase": "backends", "round": 1, "next": [], "eliminated": [], "noise": None, "base": "a"}
    asked = [_asked("speculative", 1, ["a+none", "a+x"])]
    found = cells({"a+none": [100, 104], "a+x": [99, 103]}, "speculative")
    for before, ended in ((0.0, False), (600.0, True)):
        races = [{**one, "server_seconds": before}, *asked]
        assert judge_round(rules, "speculative", 2, found, races)["ended"] is ended


def test_nothing_healthy_ends_the_phase_without_a_base() -> None:
    dead = [cell_files(Cell("backends", n, 1, failed="launch", reason=UNSUPPORTED)) for n in ("a", "b")]
    result = judge_round(RULES, "backends", 1, dead)
    assert (result["ended"], result["base"], result["next"]) == (True, None, [])


def test_a_single_healthy_one_still_gets_the_minimum_of_rounds() -> None:
    dead = [cell_files(Cell("backends", "dead", 1, failed="smoke", reason=GARBAGE))]
    assert race({"a": [100]}, extra=dead)["next"] == ["a"]
    after = race({"a": [100, 103]}, extra=dead)
    assert (after["ended"], after["base"]) == (True, "a")


def test_one_transient_failure_keeps_a_configuration_in_the_race() -> None:
    shaky = [cell_files(Cell("backends", "shaky", 1, failed="launch", reason=TIMEOUT))]
    assert set(race({"a": [100]}, extra=shaky)["next"]) == {"a", "shaky"}


def test_cells_that_no_race_asked_for_are_not_evidence() -> None:
    found = cells({"a": [100, 100.1], "b": [80, 500.0]})
    result = judge_round(RULES, "backends", 2, found, [_asked("backends", 1, ["a"])])
    assert result["evidence"] == [
        {"configuration": "a", "rounds": [1, 2]},
        {"configuration": "b", "rounds": [1]},
    ]


def test_the_previous_base_stays_while_it_is_in_the_best_class() -> None:
    close = {"a": (100.1, 100.2), "b": (100.0, 100.1), "c": (80.0, 80.1)}
    assert race(close)["base"] == "a"
    assert race(close, previous_base="b")["base"] == "b"
    assert race(close, previous_base="c")["base"] == "a"
    assert race(close, previous_base="gone")["base"] == "a"


def test_the_baseline_runs_in_every_round_in_which_anyone_else_does() -> None:
    speeds = {"a+none": (80, 80.1), "a+x": (100, 104), "a+y": (99.8, 103.9), "a+z": (50, 50.5)}
    result = race(speeds, phase="speculative")
    assert set(result["next"]) == {"a+none", "a+x", "a+y"}
    assert result["base"] is None


def test_a_phase_without_a_working_baseline_ends() -> None:
    dead = [cell_files(Cell("speculative", "a+none", 1, failed="launch", reason=UNSUPPORTED))]
    result = race({"a+x": [100]}, phase="speculative", extra=dead)
    assert result["ended"] and "baseline" in result["why"]


def test_random_tokens_are_not_measured_again_for_speculation() -> None:
    noisy = {"a+none": [80.0, 84.0], "a+x": [81.0, 85.0]}
    made = cells(noisy, "speculative")
    for run in (run for cell in made if cell.throughput for run in cell.throughput["runs"]):
        run["kind"] = "synthetic"
    result = judge_round(RULES, "speculative", 2, made, [_asked("speculative", 1, list(noisy))])
    assert result["ended"]


def test_client_bound_rounds_are_not_ranked_and_others_suffice() -> None:
    bound = Cell("backends", "b", 1, {("chat", 1): 500.0}, client_bound=True)
    good = [cell_files(Cell("backends", "b", n, {("chat", 1): 80.0 + n / 10})) for n in (2, 3)]
    found = [*cells({"a": [100, 100.1, 100.2]}), cell_files(bound), *good]
    earlier = [_asked("backends", n, ["a", "b"]) for n in (1, 2)]
    standings = judge_round(RULES, "backends", 3, found, earlier)["standings"]
    assert [(s["configuration"], s["verdict"], s["rounds"]) for s in standings] == [
        ("a", "best", [1, 2, 3]),
        ("b", "slower", [2, 3]),
    ]


def test_a_configuration_whose_every_round_is_client_bound_does_not_hold_up_the_phase() -> None:
    bound = [cell_files(Cell("backends", "b", n, {("chat", 1): 500.0}, client_bound=True)) for n in (1, 2)]
    earlier = [_asked("backends", 1, ["a", "b"])]
    result = judge_round(RULES, "backends", 2, cells({"a": [100, 100.1]}) + bound, earlier)
    assert result["ended"] and result["base"] == "a"
    assert result["standings"][1]["reason"] == "client_bound"


def test_the_order_is_seeded_by_study_and_round_and_stable_when_a_name_leaves() -> None:
    names = list("abcdefgh")
    first, second = (round_order("s", "backends", n, names) for n in (1, 2))
    assert first == round_order("s", "backends", 1, reversed(names)) != second
    assert [n for n in first if n != "c"] == round_order("s", "backends", 1, [n for n in names if n != "c"])


@pytest.mark.parametrize("sd", [0.005, 0.02])
def test_a_false_verdict_is_rarer_than_the_stated_risk(sd: float) -> None:
    truth = {"a": 100.0, "b": 99.8, "c": 98.9, "d": 96.0, "e": 85.0}
    wrong = 0
    campaigns = 40
    for campaign in range(campaigns):
        rng = random.Random(f"{sd} {campaign}")

        def make(phase: str, names: Sequence[str], round_: int, rng: random.Random = rng) -> list[Cell]:
            drift = math.exp(rng.gauss(0, 0.01))
            speeds = {name: truth[name] * drift * math.exp(rng.gauss(0, sd)) for name in sorted(names)}
            return [Cell(phase, name, round_, {("chat", 1): speed}) for name, speed in speeds.items()]

        races, _ = run_phase(RULES, "backends", list(truth), make)
        wrong += any(_is_false(row, races, truth) for race_ in races for row in race_["standings"])
    # 5 % promised; at most 5 of 40 has a probability of 98.6 % at exactly that rate.
    assert wrong <= 5


def _is_false(row: dict[str, Any], races: Sequence[dict[str, Any]], truth: Mapping[str, float]) -> bool:
    leader = next(
        s["configuration"]
        for r in races
        if row in r["standings"]
        for s in r["standings"]
        if s["verdict"] == "best"
    )
    ratio = truth[row["configuration"]] / truth[leader]
    return {
        "slower": ratio >= 1,
        "faster": ratio <= 1,
        "equivalent": not 1 / 1.02 <= ratio <= 1.02,
    }.get(row["verdict"], False)

"""What to serve by load: only verdicts make a leader or a crossing, and take nothing of the metric's risk."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from campaigns import CHAT_RULES, run_phase
from factory import GARBAGE, Cell, Load, noisy
from pivotbench.charts.frontier import finding
from pivotbench.decision.decide import decide
from pivotbench.decision.loads.words import crossing_words, place_words, standing_words
from pivotbench.decision_rules import DecisionRules
from pivotbench.summary.terminal import terminal_summary
from pivotbench.summary.text import summary_markdown

RULES = replace(CHAT_RULES, rounds_min=3, rounds_max=3)
MIXED = replace(RULES, metric_weights={"chat": 3.0, "code": 1.0})
Speeds = Mapping[str, Mapping[Load, float]]
few = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))

BACKENDS = {"a": {("chat", c): 100.0 * c for c in (1, 4, 16)}}
# Pays alone, makes no difference with 4 streams, costs with 16.
PAYS_ALONE = {
    "a+none": {("chat", 1): 100.0, ("chat", 4): 300.0, ("chat", 16): 800.0},
    "a+draft": {("chat", 1): 150.0, ("chat", 4): 300.0, ("chat", 16): 600.0},
}


def decided(
    speeds: Speeds,
    *,
    rules: DecisionRules = RULES,
    sd: float = 0.003,
    kind: str = "text",
    more: Sequence[Cell] = (),
) -> dict[str, Any]:
    """Race both phases at these speeds; names with a + are those of the second phase."""

    def make(phase: str, names: Sequence[str], round_: int) -> list[Cell]:
        cells = [
            Cell(
                phase,
                name,
                round_,
                {load: noisy(v, sd, phase, name, round_, *load) for load, v in speeds[name].items()},
                {load[0]: kind for load in speeds[name]},
            )
            for name in names
            if name in speeds
        ]
        return [*cells, *(more if round_ == 1 and phase == "backends" else ())]

    races, cells = run_phase(rules, "backends", [n for n in speeds if "+" not in n], make)
    if drafting := [n for n in speeds if "+" in n]:
        races, others = run_phase(rules, "speculative", drafting, make, races)
        cells += others
    return decide(rules, races, cells)


def best(decision: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    return {place_words(r): (r["configuration"], r["standing"]) for r in decision["regions"]["best"]}


def test_speculation_that_pays_alone_and_costs_under_load_crosses_between() -> None:
    decision = decided({**BACKENDS, **PAYS_ALONE})
    (crossing,) = decision["regions"]["crossings"]
    assert (crossing["verdict"], crossing["along"]) == ("crossing", "concurrency")
    assert crossing_words(crossing) == (
        "On chat a+draft is faster at concurrency 1, a at 16: they cross between 1 and 16"
    )
    assert best(decision) == {
        "chat at concurrency 1": ("a+draft", "leads"),
        "chat at concurrency 4": ("a", "equivalent"),
        "chat at concurrency 16": ("a", "leads"),
    }
    text = summary_markdown(decision)
    assert "they cross between 1 and 16" in text and "Exploratory" in text
    assert "they cross between 1 and 16" in terminal_summary(decision)


def test_a_change_of_the_highest_mean_without_a_verdict_is_undecided_and_names_nobody() -> None:
    speeds = {
        "x": {("chat", 1): 100.0, ("chat", 4): 300.0},
        "y": {("chat", 1): 102.0, ("chat", 4): 295.0},
    }
    decision = decided(speeds, sd=0.05)
    assert {row["standing"] for row in decision["regions"]["best"]} == {"undecided"}
    assert all(row["verdict"] == "undecided" for row in decision["regions"]["crossings"])
    assert finding(decision) == "Undecided who leads on chat"
    said = [crossing_words(row) for row in decision["regions"]["crossings"]]
    assert said and all(words.endswith("that they change places is not shown") for words in said)


def test_the_load_that_decides_has_the_deciding_verdicts() -> None:
    decision = decided({**BACKENDS, **PAYS_ALONE})
    (row,) = [r for r in decision["regions"]["by_load"] if r["decides"] and r["phase"] == "speculative"]
    assert (row["workload"], row["concurrency"], row["best"]) == ("chat", 1, decision["winner"])
    (other,) = row["others"]
    pair = next(c for c in decision["comparisons"] if {c["a"], c["b"]} == {"a+none", "a+draft"})
    ratio = pair["ratio"] if pair["a"] == "a+none" else 1 / pair["ratio"]
    assert other["verdict"] == "slower" and other["ratio"] == pytest.approx(ratio)


def test_other_loads_take_nothing_of_the_deciding_metrics_risk() -> None:
    alone = {name: {("chat", 1): v} for name, v in {"a": 100.0, "b": 99.0, "c": 98.0}.items()}
    loaded = {n: {**v, **{("chat", 2**k): 200.0 * k for k in range(1, 8)}} for n, v in alone.items()}
    for key in ("comparisons", "ranking", "classes", "winner"):
        assert decided(alone)[key] == decided(loaded)[key]


def test_the_mix_is_weighted_as_the_study_says() -> None:
    speeds = {
        "for-chat": {("chat", 1): 200.0, ("code", 1): 100.0, ("chat", 4): 300.0, ("code", 4): 100.0},
        "for-code": {("chat", 1): 100.0, ("code", 1): 200.0, ("chat", 4): 100.0, ("code", 4): 300.0},
    }
    decision = decided(speeds, rules=MIXED)
    found = best(decision)
    assert found["the mix at concurrency 1"] == found["the mix at concurrency 4"] == ("for-chat", "leads")
    assert found["code at concurrency 4"] == ("for-code", "leads")
    mixed = next(r for r in decision["regions"]["best"] if r["workload"] is None and r["concurrency"] == 4)
    assert mixed["mean_tok_s"] == pytest.approx(300**0.75 * 100**0.25, rel=0.02)
    between = [crossing_words(c) for c in decision["regions"]["crossings"] if c["along"] == "workload"]
    assert "At concurrency 1 for-chat is faster on chat, for-code on code" in between
    assert finding(decision) == "for-chat leads on chat; for-code leads on code"


def test_random_tokens_make_no_crossing_of_speculation() -> None:
    decision = decided({**BACKENDS, **PAYS_ALONE}, kind="synthetic")
    assert all(row["verdict"] == "undecided" for row in decision["regions"]["crossings"])
    assert all(configuration == "a" for configuration, _ in best(decision).values())


def test_another_backend_is_below_speculation_on_the_base_where_both_phases_say_so_together() -> None:
    slow = {load: 0.6 * speed for load, speed in PAYS_ALONE["a+none"].items()}
    decision = decided({**PAYS_ALONE, "a": PAYS_ALONE["a+none"], "slow": slow})
    assert best(decision)["chat at concurrency 1"] == ("a+draft", "leads")
    # At 4 streams another backend is faster than the base, and nobody tried to draft on it.
    other = {**slow, ("chat", 4): 400.0}
    drafts = {**PAYS_ALONE["a+draft"], ("chat", 4): 390.0}
    speeds = {**PAYS_ALONE, "a": PAYS_ALONE["a+none"], "other": other, "a+draft": drafts}
    decision = decided(speeds)
    row = next(r for r in decision["regions"]["best"] if r["concurrency"] == 4)
    assert (row["standing"], row["undecided"]) == ("undecided", ["other"])
    assert standing_words(row) == "undecided, not told apart from other"


def test_where_speculation_does_not_pay_the_first_phase_says_what_is_best() -> None:
    costs = {load: 0.8 * speed for load, speed in PAYS_ALONE["a+none"].items()}
    faster_at_16 = {**costs, ("chat", 16): 900.0}
    speeds = {"a": PAYS_ALONE["a+none"], "b": faster_at_16, "a+none": PAYS_ALONE["a+none"], "a+draft": costs}
    assert best(decided(speeds))["chat at concurrency 16"] == ("b", "leads")


def test_alike_everywhere_crossings_are_hardly_ever_claimed() -> None:
    claimed = 0
    for seed in range(40):
        rng = random.Random(seed)
        loads: list[Load] = [("chat", c) for c in (1, 4, 16)]
        speeds = {
            n: {load: 100.0 * (1 + rng.gauss(0, 1e-9)) for load in loads} for n in (f"a{seed}", "b", "c")
        }
        crossings = decided(speeds, sd=0.02)["regions"]["crossings"]
        claimed += any(row["verdict"] == "crossing" for row in crossings)
    assert claimed <= 2, "5 % of campaigns may claim one verdict too many, and a crossing needs two"


@st.composite
def campaigns(draw: Any) -> dict[str, dict[Load, float]]:
    """Two to four backends on two workloads at up to three concurrencies."""
    rng = random.Random(draw(st.integers(0, 2**32)))
    loads: list[Load] = [(w, c) for w in ("chat", "code") for c in (1, 4, 16)[: draw(st.integers(1, 3))]]
    return {
        f"c{i}": {load: 100 * load[1] ** 0.5 * (1 - 0.2 * rng.random()) for load in loads}
        for i in range(draw(st.integers(2, 4)))
    }


def measured(campaign: Speeds, *, unit: float = 1.0, more: Sequence[Cell] = ()) -> Any:
    """What is said of loads with the names taken out of the noise, so that only names differ."""

    def make(phase: str, names: Sequence[str], round_: int) -> list[Cell]:
        cells = [
            Cell(phase, n, round_, {k: unit * noisy(v, 0.01, v, round_) for k, v in campaign[n].items()})
            for n in names
            if n in campaign
        ]
        return [*cells, *(more if round_ == 1 else ())]

    races, cells = run_phase(MIXED, "backends", list(campaign), make)
    return decide(MIXED, races, cells)


def said(decision: Mapping[str, Any], names: Mapping[str, str] | None = None) -> Any:
    """Everything said of loads but figures, with names exchanged."""
    turn = (names or {}).get
    regions = decision["regions"]
    loads = {
        (r["workload"], r["concurrency"]): (
            turn(r["best"], r["best"]),
            r["standing"],
            {turn(o["configuration"], o["configuration"]): o["verdict"] for o in r["others"]},
        )
        for r in regions["by_load"]
    }
    crossings = {
        frozenset(
            (turn(c[who], c[who]), c[f"{who}_ahead_at"]["workload"], c[f"{who}_ahead_at"]["concurrency"])
            for who in "ab"
        ): c["verdict"]
        for c in regions["crossings"]
    }
    front = {
        (turn(p["configuration"], p["configuration"]), p["workload"], p["concurrency"])
        for p in decision["pareto"]
    }
    return loads, crossings, front


@few
@given(campaigns())
def test_names_and_order_change_nothing(campaign: dict[str, dict[Load, float]]) -> None:
    names = {name: f"z{9 - int(name[1:])}" for name in campaign}
    renamed = measured({names[name]: speeds for name, speeds in reversed(campaign.items())})
    assert said(renamed) == said(measured(campaign), names)


@few
@given(campaigns(), st.sampled_from([1 / 3600, 0.37, 3600.0]))
def test_units_change_nothing(campaign: dict[str, dict[Load, float]], unit: float) -> None:
    assert said(measured(campaign, unit=unit)) == said(measured(campaign))


@few
@given(campaigns())
def test_a_dead_configuration_changes_nothing(campaign: dict[str, dict[Load, float]]) -> None:
    dead = Cell("backends", "dead", 1, {("chat", 1): 900.0}, failed="smoke", reason=GARBAGE)
    assert said(measured(campaign, more=[dead])) == said(measured(campaign))


@few
@given(campaigns())
def test_a_crossing_is_two_verdicts_that_contradict_each_other(
    campaign: dict[str, dict[Load, float]],
) -> None:
    regions = measured(campaign)["regions"]
    rows = {(r["workload"], r["concurrency"]): r for r in regions["by_load"]}
    for crossing in regions["crossings"]:
        if crossing["verdict"] == "crossing" and crossing["along"] == "workload":
            for one, other in (("a", "b"), ("b", "a")):
                row = rows[tuple(crossing[f"{one}_ahead_at"].values())]
                verdicts = {o["configuration"]: o["verdict"] for o in row["others"]}
                assert row["best"] == crossing[one] and verdicts[crossing[other]] == "slower"


def test_one_load_needs_no_table() -> None:
    decision = decided({"a": {("chat", 1): 100.0}, "b": {("chat", 1): 90.0}})
    assert "By load" not in summary_markdown(decision)


def test_the_summary_says_what_to_serve_by_load_and_whether_that_changes() -> None:
    loads = [("chat", 1), ("chat", 4)]
    said = summary_markdown(decided({"a": dict.fromkeys(loads, 100.0), "b": dict.fromkeys(loads, 60.0)}))
    assert "| load | to serve | mean | standing |" in said
    assert re.search(r"\| chat at concurrency 4 \| a \| [\d.]+ tok/s \| faster than all others \|", said)
    assert "No two of these are seen to change places with the load." in said

"""Goodput is the output tok/s at the largest load within the limits, and says when it is only a bound."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from study_samples import changed, study_of

from campaigns import CHAT_RULES, run_phase
from factory import UNSUPPORTED, Cell, cell_files
from loaded import cell_of, run_at
from pivotbench.charts.build import build_charts
from pivotbench.client.percentiles import with_lost
from pivotbench.decision.contest import Contest, contest
from pivotbench.decision.decide import decide
from pivotbench.decision.loads.goodput import UNTOLD, goodput_values, largest_load
from pivotbench.decision_rules import DecisionRules
from pivotbench.evidence import CellFiles
from pivotbench.latency_limits import Goodput
from pivotbench.measurements import collect
from pivotbench.study import Metric
from pivotbench.summary.terminal import terminal_summary
from pivotbench.summary.text import summary_markdown
from report_sample import page

ROOT = Path(__file__).resolve().parents[2]

GOODPUT = Goodput("concurrency", (("ttft_seconds", "p99", 1.0),))
RATES = Goodput("rate", (("ttft_seconds", "p99", 1.0),))
RULES = replace(CHAT_RULES, metric_concurrency=None, goodput=GOODPUT, rounds_min=2, rounds_max=4)
few = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))


def test_the_crossing_lies_on_the_line_between_the_logarithms_of_load_and_latency() -> None:
    read = largest_load(GOODPUT, [run_at(4, 100.0, 0.25), run_at(16, 400.0, 4.0)])
    assert read.load == pytest.approx(8) and read.tok_s == pytest.approx(200)
    assert not read.at_least and not read.missed


def queue(service: float, rate: float) -> dict[str, Any]:
    """A run of an M/M/1 queue: its p99 is that of an exponential time."""
    return run_at(rate, 100 * rate, math.log(100) / (service - rate), over="rate")


@given(st.floats(6, 100))
def test_of_a_queue_whose_rates_are_sustained_the_largest_load_is_exact(service: float) -> None:
    within = service - math.log(100)
    read = largest_load(RATES, [queue(service, 0.5 * within), queue(service, 0.5 * (within + service))])
    assert read.load == pytest.approx(within) and read.tok_s == pytest.approx(100 * within)
    assert not read.between


@given(st.floats(2.5, 60))
def test_of_latency_in_proportion_to_the_streams_beyond_a_floor_it_is_exact_within_2_percent(
    capacity: float,
) -> None:
    runs = [run_at(2**n, 100.0, 0.1 * (1 + 9 * 2**n / capacity)) for n in range(8)]
    assert largest_load(GOODPUT, runs).load == pytest.approx(capacity, rel=0.02)


def test_below_a_rate_that_is_not_sustained_the_order_is_known_and_the_distance_is_not() -> None:
    def of(seconds: float) -> list[dict[str, Any]]:
        return [
            run_at(2.0, 200.0, seconds, over="rate"),
            run_at(4.0, 300.0, 20.0, over="rate", sustained=False),
        ]

    read = largest_load(RATES, of(0.1))
    assert read.between and 2 < (read.load or 0) < 4
    rules = replace(RULES, goodput=RATES)
    cells = [cell_of(name, r, of(0.1 + r / 1000)) for name in "ab" for r in (1, 2, 3)]
    cells += [cell_of("slow", r, of(0.6 + r / 1000)) for r in (1, 2, 3)]
    state = contest(rules, "backends", cells)
    assert state.verdict("a", "b") == "undecided" and state.verdict("slow", "a") == "slower"
    assert "not sustained" in str(state.compare("a", "b").reason)


def test_the_limit_that_is_crossed_first_gives_the_load() -> None:
    both = Goodput("concurrency", (("ttft_seconds", "p99", 1.0), ("e2e_seconds", "p50", 0.5)))
    runs = [run_at(4, 100.0, 0.25), run_at(16, 400.0, 4.0)]
    assert largest_load(both, runs).load == pytest.approx(4 * 4**0.25)


def test_a_load_exactly_at_its_limit_meets_it() -> None:
    read = largest_load(GOODPUT, [run_at(4, 100.0, 1.0), run_at(8, 150.0, 2.0)])
    assert (read.load, read.tok_s, read.at_least) == (4, pytest.approx(100), False)


def test_a_load_that_meets_the_limits_again_above_one_that_missed_them_does_not_count() -> None:
    lucky = [run_at(4, 100.0, 0.5), run_at(8, 150.0, 2.0), run_at(16, 300.0, 0.9)]
    assert largest_load(GOODPUT, lucky) == largest_load(GOODPUT, lucky[:2])


def test_where_every_load_meets_the_limits_goodput_is_at_least_that_of_the_highest() -> None:
    read = largest_load(GOODPUT, [run_at(4, 100.0, 0.1), run_at(8, 150.0, 0.2)])
    assert (read.tok_s, read.load, read.at_least) == (150.0, 8, True)


def test_where_no_load_meets_them_there_is_none_and_the_reason_names_load_and_limit() -> None:
    read = largest_load(GOODPUT, [run_at(4, 100.0, 1.5), run_at(8, 150.0, 2.0)])
    assert read.tok_s is None and read.missed
    assert read.reason == "chat at concurrency 4, the least load, has TTFT p99 1.5 s (limit 1 s)"


def test_lost_requests_are_misses_and_where_the_limits_are_crossed_is_then_unknown() -> None:
    read = largest_load(GOODPUT, [run_at(4, 100.0, 0.5), run_at(8, 150.0, None, lost=3)])
    assert (read.tok_s, read.at_least) == (100.0, True)
    first = largest_load(GOODPUT, [run_at(4, 100.0, None, lost=3)])
    assert first.missed and "of lost requests" in str(first.reason)


def test_arrivals_that_pile_up_never_meet_the_limits() -> None:
    piling = run_at(4.0, 300.0, 0.2, over="rate", sustained=False)
    read = largest_load(RATES, [run_at(2.0, 200.0, 0.1, over="rate"), piling])
    assert (read.tok_s, read.load, read.at_least) == (200.0, 2.0, True)
    alone = largest_load(RATES, [piling])
    assert alone.missed and "piled up" in str(alone.reason)


def test_a_flood_that_ended_before_it_was_measured_is_a_miss() -> None:
    flood = {**run_at(8.0, 0.0, None, over="rate"), "open_loop": None, "windows": []}
    read = largest_load(RATES, [run_at(2.0, 200.0, 0.1, over="rate"), flood])
    assert (read.tok_s, read.at_least) == (200.0, True)


def test_a_run_bound_by_the_client_says_nothing_if_the_search_comes_to_it() -> None:
    bound = run_at(8, 150.0, 0.2, bound=True)
    assert largest_load(GOODPUT, [run_at(4, 100.0, 0.1), bound]).reason == "client_bound"
    missed_before = largest_load(GOODPUT, [run_at(4, 100.0, 0.1), run_at(6, 120.0, 2.0), bound])
    assert missed_before.tok_s is not None


def test_a_run_of_which_a_part_failed_whenever_it_was_sent_says_nothing_either() -> None:
    failing = {**run_at(8, 150.0, 0.2, lost=3), "unanswered": ["prompt p7"]}
    assert largest_load(GOODPUT, [run_at(4, 100.0, 0.1), failing]).reason == "unanswered"


def test_results_without_percentiles_over_all_requests_tell_only_where_nothing_was_lost() -> None:
    def old(lost: int) -> dict[str, Any]:
        run = run_at(4, 100.0, 0.5, lost=lost)
        return {**run.pop("all_requests"), **run}

    assert largest_load(GOODPUT, [old(0)]).tok_s == 100.0
    assert largest_load(GOODPUT, [old(1)]).reason == UNTOLD


def test_a_lost_request_takes_for_ever() -> None:
    whole = [0.1 * n for n in range(1, 96)]
    assert with_lost(whole, 0)["p99"] == pytest.approx(9.406)
    assert with_lost(whole, 5)["p90"] == pytest.approx(9.01)
    assert with_lost(whole, 5)["p99"] is None
    assert with_lost([], 0)["p50"] is None
    assert with_lost([1.0, 2.0, 3.0], 2)["p50"] == 3.0


def test_over_several_workloads_it_is_the_weighted_geometric_mean() -> None:
    runs = [
        run_at(load, tok_s, seconds, workload=workload)
        for workload, speed in (("chat", 100.0), ("code", 400.0))
        for load, tok_s, seconds in ((1, speed, 1.0), (2, speed, 2.0))
    ]
    values = goodput_values(GOODPUT, {"chat": 1.0, "code": 1.0}, [cell_of("a", 1, runs)])
    assert values["a"].rounds == {1: pytest.approx(200.0)}
    assert values["a"].loads == {1: {"chat": 1, "code": 1}}


LIMITS = "ttft_seconds: {p50: 0.5}, tpot_seconds: {p50: 0.05}, e2e_seconds: {p50: 20}"
STUDY = f"goodput: {{over: concurrency, {LIMITS}}}}}"


def test_a_study_states_it_and_it_is_written_as_the_study_does(tmp_path: Path) -> None:
    study = study_of(tmp_path, changed("concurrency: 1}", STUDY))
    rules = DecisionRules.from_study(study)
    assert rules.metric_concurrency is None and rules.goodput is not None
    assert rules.goodput.limits == (
        ("ttft_seconds", "p50", 0.5),
        ("tpot_seconds", "p50", 0.05),
        ("e2e_seconds", "p50", 20.0),
    )
    assert Goodput.from_json(rules.pace["goodput"]) == rules.goodput
    assert rules.pace == yaml.safe_load(STUDY.removesuffix("}"))


def test_the_metrics_that_the_reference_shows_are_metrics() -> None:
    text = (ROOT / "config/README.md").read_text()
    shown = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]
    metrics = [Metric.model_validate(block["decision"]["metric"]) for block in shown if "decision" in block]
    assert [metric.goodput is None for metric in metrics] == [True, False]


def test_a_run_at_a_rate_has_no_part_in_a_search_over_concurrencies() -> None:
    runs = [run_at(4, 100.0, 0.5), run_at(9.0, 900.0, 0.5, over="rate"), run_at(8, 200.0, 2.0)]
    values = goodput_values(GOODPUT, {"chat": 1.0}, [cell_of("a", 1, runs)])
    assert values["a"].rounds[1] == pytest.approx(100 * 2**0.5)


Ladder = Sequence[tuple[float, float | None]]  # output tok/s and latency at each load, from the least


def ladder(capacity: float, jitter: float = 1.0, top: int = 6) -> Ladder:
    """A server whose latency rises towards saturation at ``capacity`` streams."""
    loads = [2**n for n in range(top)]
    return [(100 * c / (1 + c / 40), jitter * 0.02 * (1 + (c / capacity) ** 2 * 49)) for c in loads]


def cells_of(name: str, rounds: Sequence[Ladder], unit: float = 1.0) -> list[CellFiles]:
    return [
        cell_of(name, r, [run_at(2**n, unit * tok_s, s) for n, (tok_s, s) in enumerate(each)])
        for r, each in enumerate(rounds, start=1)
    ]


def judged(
    campaign: Mapping[str, Sequence[Ladder]], unit: float = 1.0, more: Sequence[CellFiles] = ()
) -> Contest:
    cells = [cell for name, rounds in campaign.items() for cell in cells_of(name, rounds, unit)]
    return contest(RULES, "backends", [*cells, *more])


def verdicts(state: Contest) -> dict[tuple[str, str], str]:
    return {(a, b): state.verdict(a, b) for a in state.alive for b in state.alive if a != b}


def test_more_capacity_is_faster_and_the_same_capacity_is_equivalent() -> None:
    jitters = (1.0, 1.004, 0.997)
    state = judged(
        {
            "big": [ladder(10, j) for j in jitters],
            "same": [ladder(10, j) for j in reversed(jitters)],
            "small": [ladder(6, j) for j in jitters],
        }
    )
    assert state.verdict("small", "big") == "slower"
    assert state.verdict("same", "big") == "equivalent"
    assert state.largest_loads["big"]["chat"] > state.largest_loads["small"]["chat"]


def test_two_that_no_load_overwhelms_are_neither_equal_nor_apart_and_no_round_would_help() -> None:
    state = judged({name: [ladder(1000, top=4), ladder(1000, 1.001, top=4)] for name in ("a", "b")})
    found = state.compare("b", "a")
    assert found.verdict == "undecided" and found.rounds_needed is None
    assert "not crossed by a measured load" in str(found.reason)
    assert state.unjudgeable("a", "b")


def test_a_lower_bound_that_is_higher_already_is_faster_and_never_slower() -> None:
    unlimited, limited = [ladder(1000), ladder(1000, 1.001)], [ladder(4), ladder(4, 1.001)]
    state = judged({"at-least": unlimited, "crossed": limited})
    assert state.verdict("at-least", "crossed") == "faster"
    slow = [[(tok_s / 50, seconds) for tok_s, seconds in each] for each in unlimited]
    state = judged({"at-least": slow, "crossed": limited})
    assert state.leader == "crossed" and state.verdict("at-least", "crossed") == "undecided"


def test_who_misses_the_least_load_in_a_round_is_not_led_by_its_better_rounds() -> None:
    good, fast = ladder(4), [(10 * tok_s, seconds) for tok_s, seconds in ladder(4)]
    out = [(tok_s, 5.0) for tok_s, _ in fast]
    state = judged({"steady": [good, good, good], "now-and-then": [fast, out, fast]})
    assert state.leader == "steady"
    assert state.verdict("now-and-then", "steady") == "undecided"


def raced(
    campaign: Mapping[str, Sequence[Ladder]], rules: DecisionRules
) -> tuple[list[dict[str, Any]], list[CellFiles]]:
    """Return the races of the campaign and their cells."""

    def store(made: Sequence[Cell]) -> list[CellFiles]:
        return [cells_of(cell.configuration, campaign[cell.configuration])[cell.round - 1] for cell in made]

    def make(phase: str, names: Sequence[str], round_: int) -> list[Cell]:
        return [Cell(phase, name, round_) for name in names]

    return run_phase(rules, "backends", list(campaign), make, store=store)


def decided(campaign: Mapping[str, Sequence[Ladder]], rules: DecisionRules) -> tuple[int, dict[str, Any]]:
    """Return the number of rounds and the decision."""
    races, cells = raced(campaign, rules)
    return len(races), decide(rules, races, cells)


def test_charts_and_report_tell_the_largest_load_and_what_is_a_bound() -> None:
    campaign = {"a": [ladder(1000), ladder(1000, 1.01)], "b": [ladder(6), ladder(6, 1.01)]}
    rules = replace(RULES, rounds_max=2)
    races, cells = raced(campaign, rules)
    decision, measurements = decide(rules, races, cells), collect(cells)
    charts = {n: c.to_dict() for n, c in build_charts(decision, measurements, cells).items()}
    assert "at the largest concurrency with TTFT p99 1 s" in charts["ranking"]["usermeta"]["caption"]
    assert charts["stability"]["usermeta"]["finding"].startswith("A relaunch moves speed by")
    plain = re.sub(r"<[^>]+>|\s+", " ", page(decision, measurements, cells)).replace("\u00a0", " ")
    assert "a reaches at least 1,778 tok/s" in plain
    assert "at least 32 streams" in plain


def test_the_study_of_a_lever_keeps_its_workloads_and_adds_loads(tmp_path: Path) -> None:
    study = study_of(tmp_path, changed("concurrency: 1}", STUDY))
    written = DecisionRules.from_study(study).workloads
    rules = replace(RULES, metric_weights={"chat": 1.0}, workloads={**written, "chat": written["free"]})
    _, decision = decided({"a": [ladder(1000)] * 4, "b": [ladder(1000)] * 4}, rules)
    found = next(each for each in decision["next_levers"] if each["lever"] == "raise the concurrency")
    workloads = yaml.safe_load(found["snippet"])["throughput"]["workloads"]
    assert workloads["chat"] == {**written["free"], "concurrency": [1, 4, 32, 64]}
    assert workloads["noise"] == written["noise"]


def test_who_misses_it_always_is_not_ranked_and_ends_the_race() -> None:
    rounds, decision = decided({"good": [ladder(8.0)] * 4, "bad": [ladder(0.1)] * 4}, RULES)
    assert rounds == RULES.rounds_min
    assert [row["configuration"] for row in decision["ranking"]] == ["good"]
    (pair,) = decision["comparisons"]
    assert pair["reason"].startswith("chat at concurrency 1, the least load, has TTFT p99")
    assert "goodput_missed" in {threat["code"] for threat in decision["threats"]}


def test_where_everyone_misses_it_nothing_wins_and_lower_loads_are_the_lever() -> None:
    _, decision = decided({"a": [ladder(0.1)] * 4, "b": [ladder(0.1)] * 4}, RULES)
    assert decision["winner"] is None and decision["ranking"] == []
    assert decision["regions"]["by_load"], "what was measured is told all the same"
    assert "lower concurrency" in decision["next_levers"][0]["lever"]


def test_the_decision_states_limits_largest_loads_and_what_is_only_a_bound() -> None:
    campaign = {"a": [ladder(1000), ladder(1000, 1.01)], "b": [ladder(6), ladder(6, 1.01)]}
    _, decision = decided(campaign, replace(RULES, rounds_max=2))
    assert decision["metric"]["concurrency"] is None
    assert decision["metric"]["goodput"]["ttft_seconds"] == {"p99": 1.0}
    first, second = decision["ranking"]
    assert (first["at_least"], first["largest_load"]) == (True, {"chat": pytest.approx(32)})
    assert not second["at_least"] and 4 < second["largest_load"]["chat"] < 8
    assert "goodput_at_least" in {threat["code"] for threat in decision["threats"]}
    assert any(lever["lever"] == "raise the concurrency" for lever in decision["next_levers"])
    (best,) = [row for row in decision["regions"]["best"] if row["decides"]]
    assert (best["workload"], best["concurrency"], best["configuration"]) == ("chat", None, "a")
    text = summary_markdown(decision)
    assert "output tok/s at the largest concurrency with TTFT p99 1 s" in text
    assert "at least 32 streams" in text and "a wins with at least" in text
    assert terminal_summary(decision)


@st.composite
def campaigns(draw: Any) -> dict[str, list[Ladder]]:
    """Two to five configurations of any capacity in two to four rounds."""
    rounds = draw(st.integers(2, 4))
    capacities = st.floats(0.5, 60)
    jitter = st.floats(0.97, 1.03)
    return {
        f"c{i}": [ladder(capacity, draw(jitter)) for _ in range(rounds)]
        for i, capacity in enumerate(draw(st.lists(capacities, min_size=2, max_size=5, unique=True)))
    }


@few
@given(campaigns())
def test_names_and_order_change_nothing(campaign: dict[str, list[Ladder]]) -> None:
    other = {name: f"z{9 - int(name[1:])}" for name in campaign}
    renamed = judged({other[name]: rounds for name, rounds in reversed(campaign.items())})
    assert verdicts(renamed) == {(other[a], other[b]): v for (a, b), v in verdicts(judged(campaign)).items()}


@few
@given(campaigns(), st.sampled_from([1 / 3600, 0.37, 3600.0]))
def test_units_change_nothing(campaign: dict[str, list[Ladder]], unit: float) -> None:
    assert verdicts(judged(campaign, unit)) == verdicts(judged(campaign))


@few
@given(campaigns())
def test_a_dead_configuration_changes_nothing(campaign: dict[str, list[Ladder]]) -> None:
    dead = cell_files(Cell("backends", "dead", 1, failed="launch", reason=UNSUPPORTED))
    assert verdicts(judged(campaign, more=[dead])) == verdicts(judged(campaign))


@few
@given(campaigns())
def test_bounds_never_carry_a_verdict_that_they_do_not_prove(campaign: dict[str, list[Ladder]]) -> None:
    state = judged(campaign)
    for (a, b), verdict in verdicts(state).items():
        one, other = state.subjects[a], state.subjects[b]
        if verdict == "equivalent":
            assert not (one.at_least or one.at_most or other.at_least or other.at_most)
        if verdict == "faster":
            assert not one.at_most and not other.at_least


@given(st.floats(0.5, 60), st.floats(1.01, 3))
def test_a_wider_limit_never_gives_less(capacity: float, wider: float) -> None:
    runs = [run_at(2**n, tok_s, seconds) for n, (tok_s, seconds) in enumerate(ladder(capacity))]
    narrow = largest_load(GOODPUT, runs)
    wide = largest_load(Goodput("concurrency", (("ttft_seconds", "p99", wider),)), runs)
    assert (wide.tok_s or 0) >= (narrow.tok_s or 0) * (1 - 1e-12)
    assert math.isfinite(wide.tok_s or 0)

"""The decision as a whole: the founding campaign replayed, and what must not change a verdict."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from campaigns import CHAT_RULES as RULES
from campaigns import demo_rules, founding_decision, run_phase, synthetic_replicate, write_demo
from factory import ENVIRONMENT, GARBAGE, UNSUPPORTED, Cell, cell_files, noisy
from pivotbench.decision.decide import decide
from pivotbench.decision.document import json_schema, validated
from pivotbench.decision_rules import DecisionRules
from pivotbench.files import read_json
from pivotbench.summary.terminal import terminal_summary
from pivotbench.summary.text import summary_markdown

ROOT = Path(__file__).resolve().parents[2]


def verdict(decision: dict[str, Any], a: str, b: str) -> str:
    turn = {"faster": "slower", "slower": "faster"}
    for row in decision["comparisons"]:
        if (row["a"], row["b"]) == (a, b):
            return str(row["verdict"])
        if (row["a"], row["b"]) == (b, a):
            return turn.get(row["verdict"], str(row["verdict"]))
    raise AssertionError(f"{a} and {b} were not compared")


def test_the_founding_campaign_is_eliminated_rightly() -> None:
    out = {e["configuration"]: (e["stage"], e["code"]) for e in founding_decision()["eliminated"]}
    assert out == {
        "moe-trtllm": ("launch", "unsupported_arch"),
        "dense-trtllm": ("launch", "unsupported_arch"),
        "cutedsl": ("smoke", "garbage"),
    }


def test_a_configuration_that_stood_still_while_measured_is_named_as_a_threat() -> None:
    made = [Cell("backends", name, 1, {("chat", 1): 100.0}) for name in ("a", "b")]
    races, cells = run_phase(replace(RULES, rounds_min=1, rounds_max=1), "backends", [], lambda *_: made)
    before = {threat["code"] for threat in decide(RULES, races, cells)["threats"]}
    assert cells[0].throughput is not None
    cells[0].throughput["runs"][0]["windows"][0]["output_tok_s"] = 0.1
    after = {threat["code"]: threat["message"] for threat in decide(RULES, races, cells)["threats"]}
    assert "stalled" not in before and after["stalled"].startswith("a stood still")


def test_a_measured_time_that_began_anew_is_named_once_for_each_of_its_restarts() -> None:
    made = [Cell("backends", name, 1, {("chat", 1): 100.0}) for name in ("a", "b")]
    races, cells = run_phase(replace(RULES, rounds_min=1, rounds_max=1), "backends", [], lambda *_: made)
    assert "restarted" not in {threat["code"] for threat in decide(RULES, races, cells)["threats"]}
    assert cells[0].throughput is not None
    cells[0].throughput["runs"][0]["warmup"]["restarts"] = 2
    told = {threat["code"]: threat["message"] for threat in decide(RULES, races, cells)["threats"]}
    assert told["restarted"].startswith("a stood still") and "(2 in all)" in told["restarted"]
    assert "stalled" not in told


def test_who_begins_anew_at_the_same_load_in_two_launches_is_named_for_it() -> None:
    def make(_: str, names: Sequence[str], round_: int) -> list[Cell]:
        return [Cell("backends", name, round_, {("chat", 1): 100.0}) for name in names or ("a", "b")]

    races, cells = run_phase(replace(RULES, rounds_min=2, rounds_max=2), "backends", [], make)
    for launches, told in ((1, False), (2, True)):
        for files in [each for each in cells if each.configuration == "a"][:launches]:
            assert files.throughput is not None
            files.throughput["runs"][0]["warmup"]["restarts"] = 1
        found = {threat["code"]: threat["message"] for threat in decide(RULES, races, cells)["threats"]}
        assert ("stops_again" in found) == told
    assert found["stops_again"].startswith("a stood still at the same load")


def test_rounds_that_are_copies_of_one_launch_are_named_as_a_threat() -> None:
    def make(_: str, names: Sequence[str], round_: int) -> list[Cell]:
        return [Cell("backends", name, round_, {("chat", 1): 100.0}) for name in names or ("a", "b")]

    races, cells = run_phase(replace(RULES, rounds_min=2, rounds_max=2), "backends", [], make)
    assert "copied" not in {threat["code"] for threat in decide(RULES, races, cells)["threats"]}
    first, second = (cell for cell in cells if cell.configuration == "a")
    copied = [replace(first, round=2) if cell is second else cell for cell in cells]
    told = {threat["code"]: threat["message"] for threat in decide(RULES, races, copied)["threats"]}
    assert told["copied"].startswith("a r1, a r2 are one measurement, of one launch")


def test_single_runs_of_71_6_and_71_9_are_undecided() -> None:
    decision = founding_decision()
    assert verdict(decision, "cutlass-cudnn", "cutlass-cutlass") == "undecided"
    [pair] = [c for c in decision["comparisons"] if c["phase"] == "backends"]
    assert pair["rounds_needed"] >= 2 and pair["reason"] == "a single round decides nothing"
    assert [(c["members"], c["against_best"]) for c in decision["classes"] if c["phase"] == "backends"] == [
        (["cutlass-cutlass"], "best"),
        (["cutlass-cudnn"], "undecided"),
    ]
    assert "noise_unknown" in {t["code"] for t in decision["threats"]}
    assert decision["hypotheses"][0]["verdict"] == "undecided"


def test_nextn_on_random_tokens_is_undecided_and_never_chosen() -> None:
    decision = founding_decision()
    (entry,) = decision["speculation"]
    assert (entry["evidence"], entry["verdict"]) == ("synthetic", "undecided")
    assert decision["winner"] == "cutlass-cutlass"
    assert decision["next_levers"][0]["lever"] == "measure speculation on real text"
    assert decision["hypotheses"][1]["verdict"] == "undecided"


def test_replicated_with_small_noise_they_are_one_class() -> None:
    decision = synthetic_replicate()
    (group,) = decision["classes"]
    assert set(group["members"]) == {"cutlass-cudnn", "cutlass-cutlass"}
    assert verdict(decision, "cutlass-cudnn", "cutlass-cutlass") == "equivalent"
    assert decision["hypotheses"][0]["verdict"] == "supported"


def test_nothing_healthy_has_no_winner_and_still_a_decision() -> None:
    dead = [Cell("backends", n, 1, failed="launch", reason=UNSUPPORTED) for n in ("a", "b")]
    races, cells = run_phase(RULES, "backends", [], lambda *_: dead)
    decision = decide(RULES, races, cells)
    assert (decision["winner"], decision["launch_command"], decision["ranking"]) == (None, None, [])
    assert decision["runner_up"] is None
    assert "no winner" in terminal_summary(decision)
    assert "Eliminated" in summary_markdown(decision)


def campaign(rules: DecisionRules, gains: dict[str, float], sd: float, kind: str = "text") -> dict[str, Any]:
    def make(phase: str, names: Sequence[str], round_: int) -> list[Cell]:
        return [
            Cell(phase, n, round_, {("chat", 1): noisy(100 * gains[n], sd, n, round_)}, {"chat": kind})
            for n in names
        ]

    races, cells = run_phase(rules, "backends", [n for n in gains if "+" not in n], make)
    names = [n for n in gains if "+" in n]
    races, more = run_phase(rules, "speculative", names, make, races)
    return decide(rules, races, cells + more)


def test_speculation_that_is_faster_wins_with_its_own_launch_command() -> None:
    decision = campaign(RULES, {"a": 1, "b": 0.9, "a+none": 1, "a+x": 1.3, "a+y": 1.2}, 0.002)
    assert decision["winner"] == "a+x"
    assert decision["launch_command"].startswith("python -m server")
    assert "1.3" in decision["log"][-1]
    assert verdict(decision, "a+x", "a+y") == "faster"
    assert verdict(decision, "a+x", "a+none") == "faster"
    assert decision["runner_up"]["configuration"] == "a+y"
    assert decision["runner_up"]["launch_command"].startswith("python -m server")


@pytest.mark.parametrize(("gain", "sd"), [(0.9, 0.002), (1.0, 0.002), (1.03, 0.05)])
def test_the_base_wins_where_speculation_is_not_shown_to_be_faster(gain: float, sd: float) -> None:
    decision = campaign(RULES, {"a": 1, "a+none": 1, "a+x": gain}, sd)
    assert decision["winner"] == "a"


def test_who_is_not_told_apart_from_its_rivals_leads_and_does_not_win() -> None:
    decision = campaign(RULES, {"a": 1, "a+none": 1, "a+x": 1.03}, 0.05)
    assert verdict(decision, "a+x", "a+none") == "undecided"
    assert "**a leads at " in summary_markdown(decision)
    assert "not told apart from a+x" in summary_markdown(decision)


def test_a_large_gain_on_random_tokens_is_not_chosen() -> None:
    assert campaign(RULES, {"a": 1, "a+none": 1, "a+x": 2}, 0.002, "synthetic")["winner"] == "a"


def test_a_pinned_base_is_judged_by_its_relaunch() -> None:
    pinned = replace(RULES, speculative_base="a")

    def make(phase: str, names: Sequence[str], round_: int) -> list[Cell]:
        return [Cell(phase, n, round_, {("chat", 1): noisy(100, 0.002, n, round_)}) for n in names]

    races, cells = run_phase(pinned, "speculative", ["a+none", "a+x"], make)
    decision = decide(pinned, races, cells)
    assert decision["winner"] == "a"
    assert decision["launch_command"] is not None
    broken = [
        Cell("speculative", "a+none", 1, failed="smoke", reason=GARBAGE),
        Cell("speculative", "a+x", 1, {("chat", 1): 100.0}),
    ]
    races, cells = run_phase(pinned, "speculative", [], lambda *_: broken)
    assert decide(pinned, races, cells)["winner"] is None


SPEEDS = {"a": (100, 101, 100.5), "b": (99, 100, 99.2), "c": (97.5, 97.2, 97.9), "d": (80, 81, 80.4)}


@dataclass(frozen=True)
class Outcome:
    """Every verdict, that of the slower mean on the faster, and the classes."""

    verdicts: dict[frozenset[str], str]
    classes: list[frozenset[str]]

    def renamed(self, names: Mapping[str, str]) -> Outcome:
        return Outcome(
            {frozenset(names[n] for n in pair): v for pair, v in self.verdicts.items()},
            [frozenset(names[n] for n in group) for group in self.classes],
        )


def outcome(speeds: Mapping[str, Sequence[float]], extra: Sequence[Cell] = (), step: int = 1) -> Outcome:
    """Run three rounds at these speeds; ``step`` -1 hands the cells over in reverse."""

    def make(phase: str, names: Sequence[str], round_: int) -> list[Cell]:
        made = [Cell(phase, n, round_, {("chat", 1): speeds[n][round_ - 1]}) for n in names if n in speeds]
        return [*made[::step], *(extra if round_ == 1 else ())]

    rules = replace(RULES, rounds_min=3, rounds_max=3)
    races, cells = run_phase(rules, "backends", list(speeds), make)
    decision = decide(rules, races, cells[::step])
    pairs = [sorted((c["a"], c["b"]), key=lambda n: sum(speeds[n])) for c in decision["comparisons"]]
    return Outcome(
        {frozenset(pair): verdict(decision, *pair) for pair in pairs},
        [frozenset(c["members"]) for c in decision["classes"]],
    )


def test_order_does_not_change_a_verdict() -> None:
    assert outcome(SPEEDS) == outcome(dict(reversed(SPEEDS.items())), step=-1)


def test_units_do_not_change_a_verdict() -> None:
    assert outcome(SPEEDS) == outcome({n: [v * 3600 for v in s] for n, s in SPEEDS.items()})


def test_names_do_not_change_a_verdict() -> None:
    names = {"a": "z", "b": "y", "c": "x", "d": "w"}
    assert outcome({names[n]: s for n, s in SPEEDS.items()}) == outcome(SPEEDS).renamed(names)


@pytest.mark.parametrize(("stage", "reason"), [("launch", UNSUPPORTED), ("throughput", GARBAGE)])
def test_a_dead_configuration_changes_no_verdict_between_others(stage: Any, reason: Any) -> None:
    dead = [Cell("backends", "dead", 1, {("chat", 1): 500.0}, failed=stage, reason=reason)]
    assert outcome(SPEEDS, extra=dead) == outcome(SPEEDS)


def test_classes_follow_the_leader_and_never_overlap() -> None:
    # b is equivalent to a and c to b, but c is not shown to be equivalent to a: c is not in a's class.
    steps = {"a": (100.0, 100.01, 100.02), "b": (98.6, 98.61, 98.62), "c": (97.2, 97.21, 97.22)}
    assert outcome(steps).classes == [{"a", "b"}, {"c"}]


def test_different_environments_are_not_ranked_together() -> None:
    made = [cell_files(Cell("backends", n, r, {("chat", 1): 100.0 + r})) for n in "ab" for r in (1, 2)]
    other = Cell("backends", "c", 1, {("chat", 1): 200.0}, environment={"engine_version": "other"})
    made += [cell_files(replace(other, round=r)) for r in (1, 2)]
    rules = replace(RULES, rounds_max=2)
    races, _ = run_phase(rules, "backends", [], lambda *_: [], store=lambda _: made)
    decision = decide(rules, races, made)
    assert decision["winner"] in ("a", "b")
    assert verdict(decision, "c", decision["winner"]) == "not_comparable"
    assert "environments" in {t["code"] for t in decision["threats"]}


def of_two_versions(numbers: dict[str, tuple[str, ...]], versions: dict[str, str]) -> Any:
    """Decide over configurations whose rounds ran these engine versions, declared as ``versions`` says."""
    made = [
        cell_files(
            Cell(
                *("backends", name, r + 1, {("chat", 1): speed + r}),
                environment={**ENVIRONMENT, "engine_version": number, "packages": {"torch": number}},
            )
        )
        for (name, told), speed in zip(numbers.items(), (100.0, 130.0, 150.0), strict=False)
        for r, number in enumerate(told)
    ]
    rules = replace(RULES, rounds_max=3, versions=versions)
    races, _ = run_phase(rules, "backends", [], lambda *_: [], store=lambda _: made)
    return decide(rules, races, made)


def test_versions_that_a_study_declares_are_compared() -> None:
    numbers = {"a": ("0.5.16",) * 3, "b": ("0.5.23",) * 3}
    decision = of_two_versions(numbers, {"a": "old", "b": "new"})
    assert (decision["winner"], verdict(decision, "b", "a")) == ("b", "faster")
    assert "environments" not in {t["code"] for t in decision["threats"]}
    undeclared = of_two_versions(numbers, {})
    assert verdict(undeclared, "b", "a") == "not_comparable"


def test_a_declared_version_that_changed_between_rounds_is_not_ranked_with_itself() -> None:
    numbers = {"a": ("0.5.16",) * 3, "b": ("0.5.23", "0.5.24", "0.5.23")}
    assert verdict(of_two_versions(numbers, {"a": "old", "b": "new"}), "b", "a") == "not_comparable"


def test_one_version_that_ran_as_two_builds_is_not_ranked_together() -> None:
    numbers = {"a": ("0.5.16",) * 3, "b": ("0.5.23",) * 3, "c": ("0.5.23.post1",) * 2}
    decision = of_two_versions(numbers, {"a": "old", "b": "new", "c": "new"})
    assert decision["winner"] == "b"
    assert verdict(decision, "c", "b") == "not_comparable"


def test_rounds_from_before_packages_were_recorded_are_ranked_with_later_ones() -> None:
    plain = {name: value for name, value in ENVIRONMENT.items() if name != "packages"}
    made = [
        cell_files(Cell("backends", name, r, {("chat", 1): speed + r}, environment=environment))
        for name, speed in (("a", 100.0), ("b", 130.0))
        for r, environment in ((1, plain), (2, ENVIRONMENT))
    ]
    rules = replace(RULES, rounds_max=2)
    races, _ = run_phase(rules, "backends", [], lambda *_: [], store=lambda _: made)
    assert verdict(decide(rules, races, made), "b", "a") == "faster"


def test_another_driver_splits_what_versions_do_not() -> None:
    made = [
        cell_files(
            Cell(
                *("backends", name, r, {("chat", 1): 100.0 + r}),
                environment={**ENVIRONMENT, "engine_version": name, "cores": cores},
            )
        )
        for name, cores in (("a", 2), ("b", 4))
        for r in (1, 2)
    ]
    rules = replace(RULES, rounds_max=2, versions={"a": "a", "b": "b"})
    races, _ = run_phase(rules, "backends", [], lambda *_: [], store=lambda _: made)
    assert verdict(decide(rules, races, made), "b", "a") == "not_comparable"


def test_another_host_of_the_same_kind_is_the_same_environment() -> None:
    made = [cell_files(Cell("backends", "a", r, {("chat", 1): 100.0 + r})) for r in (1, 2)]
    elsewhere = {**ENVIRONMENT, "host": "bench-2", "model": "/elsewhere/model.gguf"}
    other = Cell("backends", "b", 1, {("chat", 1): 80.0}, environment=elsewhere)
    made += [cell_files(replace(other, round=r)) for r in (1, 2)]
    rules = replace(RULES, rounds_max=2)
    races, _ = run_phase(rules, "backends", [], lambda *_: [], store=lambda _: made)
    assert verdict(decide(rules, races, made), "b", "a") == "slower"


def test_the_demo_campaign_reads_well(tmp_path: Path) -> None:
    folder = write_demo(tmp_path)
    decision = read_json(folder / "decision.json")
    assert validated(decision) == decision
    assert decision["winner"] == "flash-on+ngram-simple"
    assert {e["configuration"] for e in decision["eliminated"]} == {"kv-q4", "kv-q8-no-flash"}
    names = {(s["configuration"], s["workload"], s["concurrency"]) for s in decision["speculation"]}
    assert len(names) == len(decision["speculation"]) == 12
    assert 8 <= len(terminal_summary(decision).splitlines()) <= 14
    text = (folder / "summary.md").read_text()
    assert decision["launch_command"] in text
    assert ". Metric: " in text
    runner_up = decision["runner_up"]["configuration"]
    assert f"The runner-up's command</b></summary>\n\n{runner_up}:" in text
    assert re.search(r"\d%", text) is None
    assert all(e["configuration"] in text for e in decision["eliminated"])


def test_cost_counts_every_launch_failed_ones_too() -> None:
    decision = founding_decision()
    assert decision["cost"]["launches"] == 7
    # Two crashed launches of 2 s; garbage: launch, smoke, teardown; four whole cells of 22 s; 8 GPUs.
    assert decision["cost"]["server_seconds"] == pytest.approx(2 * 2 + 4 + 4 * 22)
    assert decision["cost"]["gpu_seconds"] == pytest.approx(8 * 96)


def test_cost_says_what_every_round_for_all_would_have_cost() -> None:
    cost = campaign(RULES, {"a": 1, "b": 0.9, "c": 0.8}, 0.0005)["cost"]
    # All are told apart after two rounds of five; each cell takes 22 s.
    assert cost["server_seconds"] == pytest.approx(3 * 2 * 22)
    assert cost["full_sweep_server_seconds"] == pytest.approx(3 * 5 * 22)


def test_a_cell_that_no_race_asked_for_changes_nothing() -> None:
    rules = demo_rules()

    def make(phase: str, names: Sequence[str], round_: int) -> list[Cell]:
        speeds = {(w, 1): 100.0 + round_ for w in rules.metric_weights}
        return [Cell(phase, n, round_, speeds) for n in names]

    races, cells = run_phase(rules, "backends", ["a", "b"], make)
    stray = cell_files(Cell("backends", "a", 9, {(w, 1): 900.0 for w in rules.metric_weights}))
    assert decide(rules, races, [*cells, stray]) == decide(rules, races, cells)


def test_the_committed_schema_is_the_models() -> None:
    assert read_json(ROOT / "workflow/schemas/decision.schema.json") == json_schema()


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ({"trust-remote-code": True}, True),
        ({"trust_remote_code": True}, True),
        ({"trust-remote-code": False}, False),
    ],
)
def test_a_model_whose_code_was_trusted_is_named(flags: dict[str, Any], named: bool) -> None:
    def make(_: str, __: Sequence[str], round_: int) -> list[Cell]:
        speeds = {"a": 100.0, "b": 90.0}
        given = {"a": flags, "b": {}}
        return [
            Cell(
                "backends",
                name,
                round_,
                tok_s={("chat", 1): noisy(tok_s, 0.003, name, round_)},
                flags=given[name],
            )
            for name, tok_s in speeds.items()
        ]

    races, cells = run_phase(RULES, "backends", [], make)
    told = {threat["code"]: threat["message"] for threat in decide(RULES, races, cells)["threats"]}
    assert ("model_code" in told) == named
    assert not named or "a ran it with your rights" in told["model_code"]

"""Who is out because of what it answers, and who is not: always against the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from campaigns import CHAT_RULES as RULES
from factory import Cell, cell_files, smoke_prompt
from pivotbench.agreement import Agreement, agree
from pivotbench.agreement.load import Share, fisher
from pivotbench.decision.contest import contest
from pivotbench.decision.racing import judge_round

SPEED = {("chat", 1): 50.0}
GOOD = "The sum is 4 or so"
LOOP = "The la la la la"
Prompts = Sequence[dict[str, Any]]


def fine(ask: str = "2+2?", gap_nats: float | None = 3.0) -> dict[str, Any]:
    return smoke_prompt(ask, GOOD, GOOD, contains="4", gap_nats=gap_nats)


def looping(ask: str = "2+2?") -> dict[str, Any]:
    return smoke_prompt(ask, LOOP, LOOP, verdict="suspect")


def wrong(ask: str = "2+2?", text: str = "The sum is 5") -> dict[str, Any]:
    return smoke_prompt(ask, text, text, contains="4")


def agreement(
    prompts: Mapping[str, Prompts], *, phase: str = "backends", rules: Any = RULES, **more: Any
) -> Agreement:
    cells = [Cell(phase, name, 1, SPEED, smoke=said, **more) for name, said in prompts.items()]
    return agree(rules, phase, [cell_files(cell) for cell in cells])


def out(found: Agreement) -> dict[str, str]:
    return {row["configuration"]: row["code"] for row in found.eliminated}


def row(found: Agreement, name: str) -> dict[str, Any]:
    assert found.table is not None
    return next(r for r in found.table["configurations"] if r["configuration"] == name)


def test_a_loop_where_the_reference_answers_well_is_garbage_with_both_texts_as_evidence() -> None:
    found = agreement({"a": [fine()], "b": [looping()]})
    assert out(found) == {"b": "garbage"}
    [entry] = found.eliminated
    assert entry["stage"] == "smoke"
    assert entry["evidence"] == [f"b: {LOOP}", f"a: {GOOD}"]


def test_a_missed_expectation_where_the_reference_meets_it_is_a_wrong_answer() -> None:
    found = agreement({"a": [fine()], "b": [wrong()]})
    assert out(found) == {"b": "wrong_answer"}
    assert "expected: contains '4'" in found.eliminated[0]["reason"]


def test_a_prompt_on_which_the_reference_loops_is_set_aside_and_nobody_is_out_by_it() -> None:
    found = agreement({"a": [looping("capital?"), fine()], "b": [looping("capital?"), fine()]})
    assert out(found) == {}
    assert found.table is not None and found.table["set_aside"] == ["capital?"]
    said = "Answers are held against a on 1 of 2 prompts; it fails the other itself"
    assert found.table["statement"] == said


def test_where_the_studys_reference_fails_every_prompt_nothing_is_judged() -> None:
    rules = replace(RULES, reference="z")
    found = agreement({"z": [looping()], "b": [fine()], "c": [wrong()]}, rules=rules)
    assert out(found) == {} and found.unjudged
    assert found.table is not None and found.table["judged"] is False
    assert found.doubtful == ["2+2?"]


def test_a_first_by_name_that_fails_everything_is_no_reference_while_another_is_able() -> None:
    found = agreement({"a": [looping()], "b": [fine()], "c": [fine()]})
    assert found.reference == "b" and out(found) == {"a": "garbage"}
    assert agreement({"a": [looping()], "b": [looping()]}).unjudged


def test_the_studys_reference_stands_unless_it_does_not_work() -> None:
    prompts = {"a": [fine()], "b": [fine()]}
    assert agreement(prompts, rules=replace(RULES, reference="b")).reference == "b"
    gone = agreement(prompts, rules=replace(RULES, reference="c"))
    assert gone.reference == "a" and gone.replaced


def test_another_text_alone_puts_nobody_out() -> None:
    other = smoke_prompt("2+2?", "It would be 4", contains="4")
    found = agreement({"a": [fine()], "b": [other]})
    assert out(found) == {} and row(found, "b")["equal"] == 0


def test_one_failed_prompt_is_excused_where_the_answer_left_at_a_near_tie_and_two_are_not() -> None:
    drifted = "The or la la la"  # leaves after "The", for the alternative "or"
    tie, clear = fine(gap_nats=0.3), fine(gap_nats=3.0)
    loop = smoke_prompt("2+2?", drifted, verdict="suspect")
    assert out(agreement({"a": [tie], "b": [loop]})) == {}
    assert row(agreement({"a": [tie], "b": [loop]}), "b")["excused"] == ["2+2?"]
    assert out(agreement({"a": [clear], "b": [loop]})) == {"b": "garbage"}
    unknown = fine(gap_nats=None)
    assert out(agreement({"a": [unknown], "b": [loop]})) == {"b": "garbage"}
    again = [fine("3+1?", gap_nats=0.3), tie], [smoke_prompt("3+1?", drifted, verdict="suspect"), loop]
    assert out(agreement({"a": again[0], "b": again[1]})) == {"b": "garbage"}


def test_a_prompt_is_failed_only_by_more_than_half_of_all_answers() -> None:
    mixed = smoke_prompt("2+2?", GOOD, "The sum is 5", contains="4")
    assert out(agreement({"a": [fine()], "b": [mixed]})) == {}
    cells = [Cell("backends", "a", r, SPEED, smoke=[fine()]) for r in (1, 2)]
    cells += [
        Cell("backends", "b", 1, SPEED, smoke=[mixed]),
        Cell("backends", "b", 2, SPEED, smoke=[wrong()]),
    ]
    assert out(agree(RULES, "backends", [cell_files(c) for c in cells])) == {"b": "wrong_answer"}


def test_answers_that_all_begin_alike_are_garbage_where_the_references_do_not() -> None:
    def collapsed(*names: str) -> dict[str, str]:
        cells = [Cell("backends", n, 1, SPEED, collapsed=n in names) for n in ("a", "b")]
        return out(agree(RULES, "backends", [cell_files(c) for c in cells]))

    assert collapsed("b") == {"b": "garbage"}
    assert collapsed("a", "b") == {}  # a model that opens every answer with "Okay"


def distances(own: Sequence[float], reference: Sequence[float] = (-1.0, -2.0, -3.0)) -> Agreement:
    cells = [
        Cell("backends", "a", 1, SPEED, continuations={"x": reference}),
        Cell("backends", "b", 1, SPEED, continuations={"x": own}),
    ]
    return agree(RULES, "backends", [cell_files(c) for c in cells])


def test_log_probabilities_beyond_the_bound_disagree_and_within_it_do_not() -> None:
    assert out(distances([-1.2, -2.2, -3.2])) == {}
    found = distances([-1.3, -2.3, -3.3])
    assert out(found) == {"b": "disagrees_with_reference"}
    assert row(found, "b")["distance_nats"] == pytest.approx(0.3)
    assert "-1.30 -2.30 -3.30" in found.eliminated[0]["evidence"][0]


def test_log_probabilities_of_what_both_answered_are_held_to_the_bound_as_well() -> None:
    long = "word " * 20

    def answered(text: str, logprob: float) -> Agreement:
        told = smoke_prompt("Go on.", text, gap_nats=3.0, logprob=logprob)
        return agreement({"a": [smoke_prompt("Go on.", long, gap_nats=3.0)], "b": [told]})

    assert out(answered(long, -0.4)) == {}
    found = answered(long, -0.6)
    assert out(found) == {"b": "disagrees_with_reference"}
    assert "of what both answered lie 0.40 nats" in found.eliminated[0]["reason"]
    assert out(answered("word " * 10 + "or else " * 10, -0.6)) == {}, "ten tokens in common are too few"


def test_what_is_as_good_as_impossible_to_both_is_no_distance() -> None:
    assert row(distances([-1.0, -2.0, -90.0], [-1.0, -2.0, -25.0]), "b")["distance_nats"] == 0


def test_a_bound_counts_as_far_as_it_is_sure() -> None:
    cells = [
        cell_files(Cell("backends", n, 1, SPEED, continuations={"x": v}))
        for n, v in (("a", [-1.0]), ("b", [-9.0]))
    ]
    assert cells[1].smoke is not None
    cells[1].smoke["continuations"][0]["at_most"] = [0]
    assert row(agree(RULES, "backends", cells), "b")["distance_nats"] == pytest.approx(8.0)
    assert cells[0].smoke is not None
    cells[0].smoke["continuations"][0]["token_logprobs"] = [-12.0]
    assert row(agree(RULES, "backends", cells), "b")["distance_nats"] == 0


def test_where_nobody_told_logprobs_the_distance_is_unknown_and_nobody_is_out() -> None:
    found = agreement({"a": [fine()], "b": [fine()]})
    assert row(found, "b")["distance_nats"] is None and out(found) == {}


def test_many_more_suspect_texts_under_load_than_the_reference_is_garbage_under_load() -> None:
    def under_load(a: int, b: int) -> dict[str, str]:
        cells = [Cell("backends", n, 1, SPEED, suspect={"loop": k}) for n, k in (("a", a), ("b", b))]
        return out(agree(RULES, "backends", [cell_files(c) for c in cells]))

    assert under_load(0, 12) == {"b": "garbage_under_load"}
    assert under_load(18, 19) == {}  # a weak model loops under either
    assert under_load(0, 3) == {}  # three prompts of twenty may be chance


def test_the_exact_test_is_fishers() -> None:
    assert fisher(Share(3, 4), Share(1, 4)) == pytest.approx(17 / 70)
    assert fisher(Share(0, 4), Share(4, 4)) == 1


def speculative(own: Prompts, baseline: Prompts, rounds: int = 1) -> dict[str, Any]:
    cells = [
        Cell("speculative", name, r, SPEED, smoke=said)
        for name, said in (("a+none", baseline), ("a+x", own))
        for r in range(1, rounds + 1)
    ]
    text: dict[str, Any] = row(agree(RULES, "speculative", [cell_files(c) for c in cells]), "a+x")[
        "greedy_text"
    ]
    return text


def test_speculation_keeps_the_text_where_it_leaves_it_at_near_ties_alone() -> None:
    turned = smoke_prompt("2+2?", "The sum or 4", contains="4")
    assert speculative([fine()], [fine()])["verdict"] == "same"
    assert speculative([turned], [fine(gap_nats=0.3)])["verdict"] == "same"
    assert speculative([turned], [fine(gap_nats=2.0)])["verdict"] == "changed"
    assert speculative([turned], [fine(gap_nats=None)])["verdict"] == "unknown"


def test_a_baseline_that_does_not_repeat_itself_excuses_as_many_changes() -> None:
    turned = smoke_prompt("2+2?", "The sum or 4", contains="4")
    unsteady = smoke_prompt("2+2?", GOOD, "The sum is 4 too", contains="4", gap_nats=2.0)
    assert speculative([turned], [unsteady])["verdict"] == "same"


def test_speculation_that_changes_the_text_is_a_threat_and_does_not_win() -> None:
    from campaigns import run_phase
    from pivotbench.decision.decide import decide

    turned = [smoke_prompt("2+2?", "The sum or 4", contains="4")]

    def make(phase: str, names: Sequence[str], round_: int) -> list[Cell]:
        return [
            Cell(
                phase,
                name,
                round_,
                {("chat", 1): (200.0 if name == "a+x" else 100.0) + 0.01 * round_},
                smoke=turned if name == "a+x" else [fine()],
            )
            for name in names
        ]

    races, cells = run_phase(RULES, "backends", ["a", "b"], make)
    races, more = run_phase(RULES, "speculative", ["a+none", "a+x"], make, races)
    decision = decide(RULES, races, cells + more)
    assert decision["winner"] == "a"
    assert "a+x is faster, but not chosen" in decision["log"][-1]
    assert "text_changed" in {threat["code"] for threat in decision["threats"]}
    assert [part["phase"] for part in decision["agreement"]] == ["backends", "speculative"]


def test_a_race_stops_a_wrong_backend_after_its_first_round() -> None:
    cells = [
        cell_files(Cell("backends", name, 1, SPEED, smoke=[said]))
        for name, said in (("a", fine()), ("b", fine()), ("c", wrong()))
    ]
    race = judge_round(RULES, "backends", 1, cells)
    assert set(race["next"]) == {"a", "b"} and race["eliminated"] == ["c"]
    assert "c is out: wrong_answer at smoke" in race["log"][0]


def test_answers_that_do_not_repeat_are_told_apart_by_launch_and_relaunch() -> None:
    flip = smoke_prompt("2+2?", GOOD, "The sum is 4", contains="4")
    found = agreement({"a": [fine()], "b": [flip]})
    assert row(found, "a")["repeatability"] == 1 and row(found, "b")["repeatability"] == 0
    assert found.unsteady == ["b"]


def test_whether_the_backends_agree_is_a_hypothesis_with_a_verdict() -> None:
    from pivotbench.decision.hypotheses import hypotheses

    def verdict(*logprobs: Sequence[float]) -> str:
        told = [{"x": values} if values else {} for values in logprobs]
        cells = [
            cell_files(Cell("backends", name, 1, SPEED, continuations=more))
            for name, more in zip("ab", told, strict=False)
        ]
        state = contest(RULES, "backends", cells)
        return hypotheses(RULES, [state], [], [], cells, None)[-1]["verdict"]

    assert verdict([-1.0], [-1.1]) == "supported"
    assert verdict([-1.0], [-2.0]) == "refuted"
    assert verdict([-1.0], []) == "undecided"
    assert verdict([-1.0]) == "untested"


def test_what_the_answers_leave_open_is_a_threat() -> None:
    from campaigns import run_phase
    from pivotbench.decision.decide import decide

    def codes(prompts: Mapping[str, Prompts], reference: str | None = None) -> set[str]:
        rules = replace(RULES, reference=reference, rounds_min=1, rounds_max=1)
        made = [Cell("backends", name, 1, SPEED, smoke=said) for name, said in prompts.items()]
        races, cells = run_phase(rules, "backends", [], lambda *_: made)
        return {threat["code"] for threat in decide(rules, races, cells)["threats"]}

    assert "answers_unjudged" in codes({"a": [looping()], "b": [looping()]})
    assert "reference_doubtful" in codes({"a": [looping(), fine("1+3?")], "b": [fine(), fine("1+3?")]})
    assert "reference_replaced" in codes({"a": [fine()], "b": [fine()]}, reference="gone")
    assert "unsteady" in codes({"a": [fine()], "b": [smoke_prompt("2+2?", GOOD, "It is 4", contains="4")]})
    calm = codes({"a": [fine()], "b": [fine()]})
    assert not calm & {"answers_unjudged", "reference_doubtful", "reference_replaced", "unsteady"}


def test_a_study_that_asks_for_speed_only_eliminates_nobody_by_answers_and_says_so_everywhere() -> None:
    from campaigns import run_phase
    from pivotbench.decision.decide import decide
    from pivotbench.report.story import story
    from pivotbench.summary.text import summary_markdown

    rules = replace(RULES, speed_only=True, rounds_min=1, rounds_max=1)
    answers = {"a": [fine()], "b": [looping()]}
    assert out(agreement(answers)) and not out(agreement(answers, rules=rules))
    made = [Cell("backends", name, 1, SPEED, smoke=said, speed_only=True) for name, said in answers.items()]
    races, cells = run_phase(rules, "backends", [], lambda *_: made)
    decision = decide(rules, races, cells)
    assert decision["winner"] and not decision["eliminated"]
    assert [part["judged"] for part in decision["agreement"]] == [False]
    assert "speed_only" in {threat["code"] for threat in decision["threats"]}
    assert story(decision).verdict == "Answers not judged"
    assert "its answers are not judged" in summary_markdown(decision)


def test_stored_results_of_an_earlier_version_say_nothing_of_answers_and_put_nobody_out() -> None:
    cells = [cell_files(Cell("backends", name, 1, SPEED)) for name in ("a", "b")]
    for cell in cells:
        assert cell.smoke is not None and cell.throughput is not None
        del cell.smoke["prompts"][0]["answers"], cell.smoke["continuations"], cell.smoke["across"]
        for run in cell.throughput["runs"]:
            del run["answers"]
    found = agree(RULES, "backends", cells)
    assert out(found) == {} and row(found, "b")["prompts"] == 0


def test_those_out_by_their_answers_are_not_ranked() -> None:
    cells = [
        cell_files(Cell("backends", name, 1, SPEED, smoke=[said]))
        for name, said in (("a", fine()), ("b", looping()))
    ]
    state = contest(RULES, "backends", cells)
    assert state.alive == state.ranked == ("a",)

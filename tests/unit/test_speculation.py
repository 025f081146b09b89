"""What is said of a speculative configuration, and what is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from campaigns import CHAT_RULES as RULES
from factory import Cell, Drafts, cell_files
from pivotbench.decision.contest import contest
from pivotbench.decision.speculation import acceptance_length, speculation
from pivotbench.decision.threats import threats
from pivotbench.measurements import rows

LOAD = ("chat", 1)


def judge(speeds: Sequence[float], drafts: Drafts | None, **more: Any) -> dict[str, Any]:
    """Judge one speculative configuration against a baseline of 100, 100.1, ... tok/s."""
    kinds = {"chat": more.pop("kind", "text")}
    made = [Cell("speculative", "a+none", n, {LOAD: 100 + n / 10}, kinds) for n in range(1, len(speeds) + 1)]
    made += [
        Cell("speculative", "a+x", n, {LOAD: v}, kinds, {"chat": drafts} if drafts else {}, **more)
        for n, v in enumerate(speeds, start=1)
    ]
    files = [cell_files(c) for c in made]
    state = contest(RULES, "speculative", files)
    (entry,) = speculation(RULES, state, "a+none", rows(files))
    return entry


def test_acceptance_length_weighs_runs_by_their_tokens() -> None:
    long = {"acceptance_length": 2.0, "output_tokens": 1000}
    short = {"acceptance_length": 4.0, "output_tokens": 100}
    silent = {"acceptance_length": None, "output_tokens": 1000}
    assert acceptance_length([long, short, silent]) == pytest.approx(1100 / (500 + 25))


def test_an_acceptance_that_was_not_reported_is_not_one() -> None:
    assert acceptance_length([{"acceptance_length": None, "output_tokens": 100}]) is None
    entry = judge([120, 120.1], None)
    assert (entry["acceptance_length"], entry["step_cost_ratio"]) == (None, None)
    assert entry["verdict"] == "pays"


@pytest.mark.parametrize(
    ("load", "told"),
    [
        ({}, {"forced_length"}),
        ({"stop": "natural"}, set()),
        ({"kinds": {"chat": "synthetic"}}, set()),
        ({"drafts": {}}, set()),
        ({"unanswered": ["turn 2 of the conversations (9 times: HTTP 400: too long)"]}, {"unanswered"}),
    ],
)
def test_acceptance_of_answers_driven_beyond_their_end_is_a_threat(
    load: dict[str, Any], told: set[str]
) -> None:
    drafts = {"chat": Drafts(800, 600, counted=True)} if "unanswered" not in load else {}
    cell = Cell("speculative", "a+x", 1, {LOAD: 100.0}, **({"drafts": drafts} | load))
    found = threats(RULES, [], rows([cell_files(cell)]), [], frozenset())
    assert {t["code"] for t in found} == told
    assert all("chat" in t["message"] or "too long" in t["message"] for t in found)


def test_speedup_is_acceptance_over_step_cost() -> None:
    entry = judge([150, 150.2], Drafts(800, 600, counted=True))
    assert entry["acceptance_length"] == pytest.approx(2.5, rel=0.01)
    assert entry["acceptance_length"] / entry["step_cost_ratio"] == pytest.approx(entry["speedup"], rel=0.01)
    assert entry["break_even"] == entry["step_cost_ratio"]
    assert (entry["verdict"], entry["derived"]) == ("pays", False)


def test_rejected_drafts_are_named_as_the_cause() -> None:
    entry = judge([80, 80.1], Drafts(1000, 50, counted=True))
    assert entry["verdict"] == "costs"
    assert "drafts are rejected" in entry["why"]


def test_dear_verification_is_named_where_drafts_were_accepted() -> None:
    entry = judge([80, 80.1], Drafts(700, 600, counted=True))
    assert "verification is too dear" in entry["why"]


def test_nothing_drafted_is_said() -> None:
    assert "nothing was drafted" in judge([80, 80.1], Drafts(0, 0))["why"]


def test_no_cause_is_claimed_where_passes_were_not_counted() -> None:
    entry = judge([80, 80.1], Drafts(1000, 50))
    assert entry["derived"] and entry["verdict"] == "costs"
    assert "no cause is claimed" in entry["why"]
    assert "rejected" not in entry["why"]


def test_equal_within_the_margin() -> None:
    assert judge([100.2, 100.3], Drafts(100, 50))["verdict"] == "equal"


def test_a_single_round_is_undecided() -> None:
    entry = judge([150], Drafts(800, 600))
    assert (entry["verdict"], entry["ci"]) == ("undecided", None)


@pytest.mark.parametrize(
    ("more", "evidence"),
    [
        ({"kind": "synthetic"}, "synthetic"),
        ({"speed_only": True}, "synthetic"),
        ({"simulated": True}, "simulated"),
    ],
)
def test_only_real_text_and_real_drafts_give_a_verdict(more: dict[str, Any], evidence: str) -> None:
    entry = judge([150, 150.2], Drafts(800, 600, counted=True), **more)
    assert (entry["evidence"], entry["verdict"], entry["rounds_needed"]) == (evidence, "undecided", None)
    assert entry["speedup"] == pytest.approx(1.5, rel=0.01)


def test_client_bound_rounds_give_no_speedup() -> None:
    entry = judge([150, 150.2], Drafts(800, 600), client_bound=True)
    assert (entry["verdict"], entry["speedup"]) == ("undecided", None)
    assert "client_bound" in entry["why"]


def test_a_limit_of_requests_that_speculation_lowered_is_the_cause_and_not_the_drafts() -> None:
    """SGLang serves 48 requests at once under speculation: at 64 that is what is measured."""
    load = ("chat", 64)
    made = [
        Cell("speculative", name, n, {load: speed + n / 10}, effective={"max-running-requests": most}, **more)
        for name, speed, most, more in (
            ("a+none", 1000.0, 4096, {}),
            ("a+x", 900.0, 48, {"flags": {"speculative-algorithm": "NGRAM"}}),
        )
        for n in (1, 2)
    ]
    files = [cell_files(c) for c in made]
    rules = replace(RULES, engine="sglang", metric_concurrency=64)
    state = contest(rules, "speculative", files)
    (entry,) = speculation(rules, state, "a+none", rows(files))
    assert entry["verdict"] == "undecided"
    assert entry["why"] == (
        "undecided: they serve 48 and 4096 requests at once and 64 were sent; "
        "to compare them, serve both with max-running-requests: 64"
    )
    assert entry["confounders"][0].startswith("max_running_requests: 48 | 4096 (under speculation SGLang")
    assert state.compare("a+x", "a+none").verdict == state.verdict("a+x", "a+none") == "not_comparable"

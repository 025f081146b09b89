"""Every hypothesis ends supported, refuted, undecided or untested, with the figures that say so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from campaigns import CHAT_RULES, founding_decision, run_phase, synthetic_replicate
from factory import ENVIRONMENT, GARBAGE, Cell, Drafts, noisy
from pivotbench.decision.decide import decide
from pivotbench.decision_rules import DecisionRules
from pivotbench.study import load_study
from unit.study_samples import changed, write_study

GPU = {**ENVIRONMENT, "gpus": [{"name": "NVIDIA H200", "uuid": "GPU-1", "memory_mib": 100_000}]}


def campaign(rules: DecisionRules, speeds: Mapping[str, float], gain: float | None = 1.2, **more: Any) -> Any:
    """The hypotheses of a campaign of these backends and a way of drafting ``gain`` times as fast."""
    gains = {"none": 1.0} if gain is None else {"none": 1.0, "copy": gain}

    def make(phase: str, names: Sequence[str], round_: int) -> list[Cell]:
        made = []
        for name in names:
            base, _, drafting = name.partition("+")
            tok_s = {("chat", 1): noisy(speeds[base] * gains.get(drafting, 1.0), 0.002, name, round_)}
            drafts = {"chat": Drafts(800, 600, counted=True)} if drafting == "copy" else {}
            fails = {"failed": "smoke", "reason": GARBAGE} if speeds[base] == 0 else {}
            made.append(Cell(phase, name, round_, tok_s=tok_s, drafts=drafts, **fails, **more))  # type: ignore[arg-type]
        return made

    races, cells = run_phase(rules, "backends", sorted(speeds), make)
    base = races[-1]["base"]
    races, others = run_phase(rules, "speculative", [f"{base}+{name}" for name in gains], make, races)
    decision = decide(rules, races, cells + others)
    return {h["statement"]: (h["verdict"], h["evidence"]) for h in decision["hypotheses"]}


def test_the_four_of_the_founding_campaign_are_asked_of_every_campaign() -> None:
    before = {h["statement"].split(":")[0]: h["verdict"] for h in founding_decision()["hypotheses"]}
    assert before == {
        "The two fastest backends are the same within 2 %, relaunch after relaunch": "undecided",
        "Speculative decoding pays on the study's mix of workloads": "undecided",
        "The draft path works": "undecided",
        "Memory has headroom": "untested",
        "The backends that work agree": before["The backends that work agree"],
    }
    after = synthetic_replicate()["hypotheses"][0]
    assert after["verdict"] == "supported" and " over 2 rounds" in after["evidence"]


@pytest.mark.parametrize(
    ("speeds", "gain", "used_mib", "expected"),
    [
        ({"a": 100.0, "b": 100.1}, 1.2, 50_000, ["supported"] * 4),
        ({"a": 100.0, "b": 110.0}, 0.8, 95_000, ["refuted", "refuted", "supported", "refuted"]),
        ({"a": 100.0}, None, 50_000, ["untested", "untested", "untested", "supported"]),
    ],
)
def test_each_ends_with_a_verdict_and_its_figures(
    speeds: dict[str, float], gain: float | None, used_mib: int, expected: list[str]
) -> None:
    rules = replace(CHAT_RULES, gpus=1)
    found = campaign(rules, speeds, gain, environment=GPU, per_gpu_mib={"GPU-1": used_mib})
    assert [verdict for verdict, _ in found.values()][:4] == expected
    for verdict, evidence in list(found.values())[:4]:
        assert evidence and (verdict == "untested" or any(c.isdigit() for c in evidence)), evidence


def test_what_the_study_states_is_answered_from_the_same_comparisons() -> None:
    stated = (
        ("b", "faster", "a"),
        ("b", "equivalent", "a"),
        ("a", "slower", "b"),
        ("copy", "faster", "none"),
        ("c", "faster", "a"),
        ("d", "faster", "a"),
    )
    found = campaign(replace(CHAT_RULES, stated=stated), {"a": 100.0, "b": 110.0, "c": 0.0})
    assert found["b is faster than a"][0] == found["a is slower than b"][0] == "supported"
    assert found["b is equivalent to a"][0] == "refuted"
    assert found["copy is faster than none"][0] == "supported"
    assert found["c is faster than a"] == ("untested", "c is out (garbage at smoke)")
    assert found["d is faster than a"] == ("untested", "the two were not measured together")
    assert found["b is faster than a"][1].startswith("b / a = 1.10")


def test_what_a_single_round_says_of_it_is_undecided_with_the_reason() -> None:
    rules = replace(CHAT_RULES, stated=(("b", "faster", "a"),), rounds_min=1, rounds_max=1)
    verdict, evidence = campaign(rules, {"a": 100.0, "b": 110.0})["b is faster than a"]
    assert verdict == "undecided" and evidence.endswith("a single round decides nothing")


def test_memory_of_a_pinned_base_is_that_of_its_relaunch() -> None:
    def make(phase: str, names: Sequence[str], round_: int) -> list[Cell]:
        tok_s = {("chat", 1): 100.0 + round_ / 10}
        return [
            Cell(phase, name, round_, tok_s, environment=GPU, per_gpu_mib={"GPU-1": 40_000}) for name in names
        ]

    rules = replace(CHAT_RULES, gpus=1, speculative_base="a")
    decision = decide(rules, *run_phase(rules, "speculative", ["a+none", "a+copy"], make))
    assert decision["winner"] == "a"
    headroom = next(h for h in decision["hypotheses"] if h["statement"].startswith("Memory"))
    assert headroom["verdict"] == "supported" and "60 % left" in headroom["evidence"]


def test_a_study_states_them(tmp_path: Path) -> None:
    text = changed("  reference: plain", "  hypotheses:\n    - {a: flash, verdict: faster, b: plain}")
    rules = DecisionRules.from_study(load_study(write_study(tmp_path, text)))
    assert rules.stated == (("flash", "faster", "plain"),)

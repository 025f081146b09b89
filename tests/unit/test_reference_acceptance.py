"""A measured acceptance length beside published ones."""

from __future__ import annotations

import pytest

from pivotbench.decision.reference_acceptance import beside_published

MODEL = "nvidia/Qwen3.5-397B-A17B-NVFP4"


def clause(length: float, *, without_gain: bool = True, model: str = MODEL, **more: object) -> str | None:
    settings = {"speculative-num-steps": 3, **more}
    return beside_published(model, settings, length, without_gain=without_gain)


def test_a_length_far_below_the_published_ones_points_at_the_draft_path() -> None:
    said = clause(1.9)
    assert said is not None
    assert "3 draft tokens: 3.39 (coding, thinking on) and 3.33 (coding, thinking off)" in said
    assert "suspect the draft path" in said


def test_a_length_near_them_without_gain_points_at_verification() -> None:
    assert "suspect the cost of verification" in str(clause(3.2))
    assert "suspect" not in str(clause(3.2, without_gain=False))


@pytest.mark.parametrize(
    "said",
    [
        clause(2.0, model="meta-llama/Llama-3-8B"),
        clause(2.0, **{"speculative-eagle-topk": 4}),
        clause(2.0, **{"speculative-num-steps": 9}),
        clause(2.0, **{"speculative-num-steps": None}),
    ],
)
def test_nothing_is_said_where_nothing_is_published_for_it(said: str | None) -> None:
    assert said is None

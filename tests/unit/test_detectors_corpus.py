"""A slice of the corpus of benchmarks/detectors: a detector that becomes worse fails here, at once."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.detectors.corpus import corpus
from benchmarks.detectors.judging import judge, misjudged
from benchmarks.detectors.samples import Family

from pivotbench.detectors import inspect, inspect_load_text

EACH = 4  # samples of a family
LONG = 40_000  # characters: long logs take most of the time


@pytest.fixture(scope="module")
def families() -> list[Family]:
    return [
        Family(f.name, f.label, f.part, tuple(s for s in f.samples if len(s.answers[0].text) < LONG)[:EACH])
        for f in corpus()
    ]


def missed(families: list[Family], label: str) -> list[tuple[str, object]]:
    return [(f.name, found) for f in families if f.label == label for _, found in misjudged(f)]


def test_garbage_made_in_every_way_is_found(families: list[Family]) -> None:
    assert missed(families, "garbage") == []


def test_good_text_that_looks_odd_and_real_answers_pass(families: list[Family]) -> None:
    assert missed(families, "good") == []


def test_what_the_model_writes_when_it_loops_is_never_bad_alone_or_under_load(families: list[Family]) -> None:
    weak = [sample for f in families if f.label == "weak" for sample in f.samples]
    assert weak and missed(families, "weak") == []
    assert all(f.verdict != "bad" for s in weak for f in inspect_load_text(s.answers[0].text))


def test_the_model_that_loops_is_left_to_the_comparison(families: list[Family]) -> None:
    looping = [s for f in families if f.name == "model, loops" for s in f.samples]
    assert sum(bool(judge(sample)) for sample in looping) >= len(looping) / 2


def test_every_detector_finds_something_in_the_corpus(families: list[Family]) -> None:
    names = {f.name for f in inspect("a text", [1], [-0.5])}
    found = {f.name for family in families for sample in family.samples for f in judge(sample)}
    assert names <= found

"""Studies that ask for the same are equal in canonical form; any difference that matters shows."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from study_samples import RIGHT, changed, study_of, write_study

from pivotbench.cells import throughput_request
from pivotbench.study import load_study
from pivotbench.study.source import read_source


def shuffled(value: Any, order: random.Random) -> Any:
    """Return ``value`` with the keys of every mapping in another order."""
    if isinstance(value, dict):
        keys = list(value)
        order.shuffle(keys)
        return {key: shuffled(value[key], order) for key in keys}
    if isinstance(value, list):
        return [shuffled(item, order) for item in value]
    return value


FULL = RIGHT + "env: {B: x, A: z}\n"
FULL = FULL.replace(
    "  plain: {}\n", "  plain: {}\n  matrix: {c: [x, y], a: [1, 2]}\n  exclude: [{c: x, a: 2}]\n"
)


@given(seed=st.integers(0, 2**32))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_order_of_keys_never_matters(tmp_path: Path, seed: int) -> None:
    file = write_study(tmp_path, FULL)
    expected = load_study(file).canonical()
    data = read_source(file).data
    again = study_of(tmp_path, json.dumps(shuffled(data, random.Random(seed))))  # JSON is YAML
    assert json.dumps(again.canonical()) == json.dumps(expected)


def test_it_is_plain_json(tmp_path: Path) -> None:
    canonical = study_of(tmp_path).canonical()
    assert json.loads(json.dumps(canonical, allow_nan=False)) == canonical


def test_the_folder_makes_no_difference(tmp_path: Path) -> None:
    here, there = tmp_path / "a", tmp_path / "b"
    here.mkdir()
    there.mkdir()
    text = changed("org/small-model", "./m.gguf") + "python: venv/bin/python\n"
    assert study_of(here, text).canonical() == study_of(there, text).canonical()


def test_a_matrix_equals_its_configurations_written_out(tmp_path: Path) -> None:
    matrix = changed("  plain: {}", "  plain: {}\n  matrix: {b: [x, y]}")
    named = changed("  plain: {}", "  y: {b: y}\n  plain: {}\n  x: {b: x}")
    assert study_of(tmp_path, matrix).canonical() == study_of(tmp_path, named).canonical()


def test_a_written_default_equals_an_omitted_one(tmp_path: Path) -> None:
    text = changed("{gpus: 0}", "{gpus: 0, slot_wait_seconds: 3600}")
    assert study_of(tmp_path, text).canonical() == study_of(tmp_path).canonical()


def test_results_made_before_answers_could_end_by_themselves_hold(tmp_path: Path) -> None:
    """A key that came later is in a stage's request only where it asks for something else."""
    asked = throughput_request(study_of(tmp_path))["workloads"]["free"]
    assert "stop" not in asked
    natural = changed(
        "output_tokens: 16, concurrency: [1, 4]", "output_tokens: 16, concurrency: [1, 4], stop: natural"
    )
    assert throughput_request(study_of(tmp_path, natural))["workloads"]["free"] == asked | {"stop": "natural"}


def test_a_changed_prompt_file_shows(tmp_path: Path) -> None:
    before = study_of(tmp_path).canonical()
    study = write_study(tmp_path, prompts='{"id": "a", "prompt": "Something else."}\n')
    assert load_study(study).canonical() != before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("threads: 1", "threads: 2"),
        ("flash-attn: on", "flash-attn: off"),
        ("org/small-model", "org/other-model"),
        ("max_tokens: 8", "max_tokens: 9"),
        ("Name a colour.", "Name a flower."),
        ("seconds: 2", "seconds: 3"),
        ("concurrency: [1, 4]", "concurrency: [1, 2]"),
        ("margin: 0.1", "margin: 0.2"),
        ("max: 3", "max: 4"),
        ("spec-type: ngram-simple", "spec-type: ngram-mod"),
        ("  copy:", "  on: plain\n  copy:"),
    ],
)
def test_a_change_shows(tmp_path: Path, old: str, new: str) -> None:
    assert study_of(tmp_path, changed(old, new)).canonical() != study_of(tmp_path).canonical()

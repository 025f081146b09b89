"""A file of continuations is refused with its line, and counts by its content."""

from __future__ import annotations

from pathlib import Path

import pytest
from study_samples import RIGHT, changed, write_study

from pivotbench.cells import smoke_request
from pivotbench.errors import UserError
from pivotbench.study import load_study
from pivotbench.study.continuations import read_continuations

GOOD = '{"id": "a", "prompt": "One, two,", "continuation": " three"}\n'


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (GOOD + "{id: b}\n", 2, "not valid JSON"),
        ("[1]\n", 1, "not an object"),
        (GOOD.replace("prompt", "promt"), 1, "did you mean 'prompt'?"),
        ('{"id": "a", "prompt": "x"}\n', 1, "continuation: is missing; write {"),
        ('{"id": "a", "prompt": " ", "continuation": "x"}\n', 1, "prompt: must be text"),
        (GOOD.replace("three", r"\ud83d"), 1, "half a character"),
        (GOOD + "\n" + GOOD, 3, "the same id as line 1"),
        ("\n", 1, "holds no continuation"),
    ],
)
def test_a_wrong_line_is_refused_by_number(tmp_path: Path, text: str, line: int, words: str) -> None:
    file = tmp_path / "c.jsonl"
    file.write_text(text)
    with pytest.raises(UserError) as refused:
        read_continuations(file, Path("c.jsonl"))
    assert f"c.jsonl:{line}: " in str(refused.value) and words in str(refused.value)


def test_a_missing_and_a_large_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        read_continuations(tmp_path / "no.jsonl")
    large = tmp_path / "large.jsonl"
    large.write_text(GOOD + "\n" * (17 << 10))
    with pytest.raises(UserError, match="larger than 16 KiB"):
        read_continuations(large)


def test_a_study_carries_its_continuations_by_content(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text(GOOD)
    text = changed("  max_tokens: 8\n", "  max_tokens: 8\n  continuations: c.jsonl\n")
    request = smoke_request(load_study(write_study(tmp_path, text)))
    assert request["continuations"] == [{"id": "a", "prompt": "One, two,", "continuation": " three"}]
    assert request["repeats"] == 2


def test_a_study_without_continuations_asks_for_none(tmp_path: Path) -> None:
    assert "continuations" not in smoke_request(load_study(write_study(tmp_path, RIGHT)))

"""The prompt sets that ship are what their README says."""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path

import pytest

from pivotbench.prompt_files import read_prompts

FOLDER = Path(__file__).parents[2] / "config" / "prompts"
SETS = sorted(file.stem for file in FOLDER.glob("*.jsonl") if file.stem != "continuations")
TABLE = {
    name: (int(prompts), int(words.replace(",", "")))
    for name, prompts, words in re.findall(
        r"^\| `([a-z-]+)\.jsonl` \|[^|]*\| (\d+) \| ([\d,]+) \|",
        (FOLDER / "README.md").read_text(),
        re.MULTILINE,
    )
}


def texts(name: str) -> list[str]:
    """Return what the user says in each prompt of a set, all turns of a conversation together."""
    rows = [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
    return ["\n".join(row.get("turns", [row.get("prompt")])) for row in rows]


def test_the_readme_names_every_set() -> None:
    assert sorted(TABLE) == SETS


@pytest.mark.parametrize("name", SETS)
def test_a_set_is_as_large_as_the_readme_says(name: str) -> None:
    file = FOLDER / f"{name}.jsonl"
    median = statistics.median(len(text.split()) for text in texts(name))
    assert len(read_prompts(file)) == TABLE[name][0]
    assert abs(median - TABLE[name][1]) <= 0.5


def test_a_third_of_the_programming_requests_gives_a_snippet() -> None:
    snippets = [re.findall(r"```\w+\n(.*?)```", text, re.DOTALL) for text in texts("code")]
    given = [snippet.count("\n") for [snippet] in filter(None, snippets)]
    assert len(given) == 11 and min(given) >= 10 and max(given) <= 40


def test_extraction_gives_a_passage_worth_repeating() -> None:
    assert all(150 <= len(text.split()) <= 400 for text in texts("extraction"))


def test_long_prompts_are_long() -> None:
    assert all(2000 <= len(text.split()) <= 3500 for text in texts("long"))


def test_no_two_realistic_prompts_share_eight_words_in_a_row() -> None:
    owner: dict[str, str] = {}
    for name in ("code", "prose", "questions", "extraction", "conversations", "long"):
        for number, text in enumerate(texts(name)):
            words = text.lower().split()
            for start in range(len(words) - 7):
                phrase = " ".join(words[start : start + 8])
                assert owner.setdefault(phrase, f"{name} {number}") == f"{name} {number}", phrase

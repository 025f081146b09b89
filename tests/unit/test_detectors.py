"""Garbage is found; what a small model writes when all is well passes."""

from __future__ import annotations

import pytest

from pivotbench.detectors import expectation_met, inspect, inspect_load_text, token_runs

GOOD = {
    "short": "The answer to this classic math problem is 4.",
    "one digit": "4",
    "one word": "Paris.",
    "list": "1. Red\n2. Blue\n3. Green",
    "speech": "No way!!! Really???",
    "trillion": "1000000000000",
    "refrain": (
        "The wind, the wind, the wind goes by,\nIt sings above the town.\n"
        "Away, away, away, away,\nThe yellow leaves come down."
    ),
    "table": "| item | price |\n|------|-------|\n"
    + "".join(f"| item {n} | {n * 3}.00 |\n" for n in range(12)),
    "rule": "Title\n" + "=" * 78 + "\nThe text below the line has a few words of its own.",
    "code": "".join(f"    if value == {n}:\n        return '{chr(97 + n)}'\n" for n in range(8)),
    "json": '{"users": ['
    + ", ".join(f'{{"id": {n}, "name": "user{n}", "active": true}}' for n in range(10))
    + "]}",
    "counting": ", ".join(str(n) for n in range(1, 60)),
    "hex dump": "\n".join(
        f"{n * 16:08x}  00 00 00 00 7f 45 4c 46  02 01 01 00 00 00 00 0{n}" for n in range(8)
    ),
    "binary": "01001000 01100101 01101100 01101100 01101111",
    "chinese": "法国的首都是巴黎。巴黎位于塞纳河畔，是法国的政治、经济和文化中心。",
    "laughter": "哈哈哈哈，这个笑话真好笑！",
    "arabic": "عاصمة فرنسا هي باريس، وتقع على نهر السين.",
    "emoji": "Great job! 🎉🎉🎉 See you tomorrow 👨‍👩‍👧‍👦",
    "cut in a character": "A smile: \ufffd",
    "indented": "def f():\n" + " " * 40 + "return 1\n",
}

GARBAGE = {
    "exclamation marks": "!!!!!!!!",
    "plus signs": "++++",
    "newlines": "\n" * 40,
    "newlines after a word": "The" + "\n" * 40,
    "spaces": "     ",
    "nothing": "",
    "replacement characters": "\ufffd" * 12,
    "replacement characters between words": "The \ufffd\ufffd answer \ufffd is \ufffd\ufffd here",
    "control characters": "\x00\x01\x02\x00\x01",
    "one letter": "a" * 40,
    "good, then one character": "The capital of France is Paris, which lies on the Seine. " + "!" * 60,
    "two words": "la femme " * 20,
    "a sentence": "I am a good model. " * 12,
    "good, then a loop": "The capital of France is a city with a long past. " + "and so on, " * 15,
    "chinese loop": "你好吗" * 12,
    "two characters": "+!" * 40,
}


def fired(text: str) -> list[str]:
    return [f.name for f in inspect(text, None) if f.verdict == "bad"]


@pytest.mark.parametrize("name", GOOD)
def test_good_text_passes(name: str) -> None:
    assert fired(GOOD[name]) == []
    assert all(f.verdict == "ok" for f in inspect_load_text(GOOD[name]))


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_is_found(name: str) -> None:
    assert fired(GARBAGE[name]) != []


@pytest.mark.parametrize("text", ["!" * 96, "\n" * 96, "\ufffd" * 30, "", "  \n ", "The" + "+" * 90])
def test_broken_numerics_show_in_load_text(text: str) -> None:
    assert any(f.verdict == "bad" for f in inspect_load_text(text))


@pytest.mark.parametrize(
    "text",
    [
        "la femme au martyre, " * 12,
        "The end." + "\n\nThe end." * 20,
        "A short answer of a few words." + "_" * 80,
    ],
)
def test_a_model_driven_past_its_end_may_loop_under_load(text: str) -> None:
    assert all(f.verdict == "ok" for f in inspect_load_text(text))


def test_token_runs_need_ids() -> None:
    assert token_runs([0] * 20).verdict == "bad"
    assert token_runs([5, 9, 9, 9, 2]).verdict == "ok"
    assert "token_runs" in [f.name for f in inspect("text", [1, 2])]
    assert "token_runs" not in [f.name for f in inspect("text", None)]


def test_expectations() -> None:
    text = "The answer is 4.\n"
    assert expectation_met(text, contains="ANSWER")
    assert not expectation_met(text, contains="five")
    assert expectation_met(text, matches=r"\b4\b") and not expectation_met(text, matches=r"^4$")
    assert expectation_met(text, equals="The answer is 4.") and not expectation_met(text, equals="4")
    assert not expectation_met(text, contains="4", equals="4")

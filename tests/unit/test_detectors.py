"""Garbage is found; what a small model writes when all is well passes."""

from __future__ import annotations

import pytest

from pivotbench.detectors import inspect, inspect_load_text, token_runs

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


# What no working model writes, however weak it is and however far it is driven.
IMPOSSIBLE = {
    "exclamation marks": "!!!!!!!!",
    "a load of exclamation marks": "!" * 96,
    "plus signs after a first word": "The" + "+" * 90,
    "newlines": "\n" * 96,
    "spaces": "  \n ",
    "nothing": "",
    "replacement characters": "\ufffd" * 12,
    "control characters": "\x00\x01\x02\x00\x01",
    "dots": "." * 96,
}

# What a weak model may write by itself, or once it is driven past its natural end.
WEAK = {
    "a loop": "la femme au martyre, " * 12,
    "an end over and over": "The end." + "\n\nThe end." * 20,
    "a line to fill in": "4." + "_" * 250,
    "blank lines": "Paris." + "\n" * 250,
    "a fraction": "1/3 = 0." + "3" * 250,
    "a scream": "Aaaaaaaaaaaaaaaaaaaaaaah!",
    "two characters": "+!" * 40,
}


def verdicts(text: str) -> set[str]:
    return {f.verdict for f in inspect(text, None)}


@pytest.mark.parametrize("name", GOOD)
def test_good_text_passes(name: str) -> None:
    assert [f for f in inspect(GOOD[name], None) if f.verdict != "ok"] == []


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_is_found(name: str) -> None:
    assert verdicts(GARBAGE[name]) != {"ok"}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_what_no_model_writes_is_bad_alone_and_under_load(name: str) -> None:
    assert "bad" in verdicts(IMPOSSIBLE[name])
    assert any(f.verdict == "bad" for f in inspect_load_text(IMPOSSIBLE[name]))


@pytest.mark.parametrize("name", WEAK)
def test_what_a_weak_model_writes_is_left_to_the_comparison(name: str) -> None:
    assert "bad" not in verdicts(WEAK[name])
    assert any(f.verdict == "suspect" for f in inspect_load_text(WEAK[name]))


def test_token_runs_need_ids() -> None:
    assert token_runs([0] * 20).verdict == "suspect"
    assert token_runs([0] * 40).verdict == "bad"
    assert token_runs([5, 9, 9, 9, 2]).verdict == "ok"
    assert "token_runs" in [f.name for f in inspect("text", [1, 2])]
    assert "token_runs" not in [f.name for f in inspect("text", None)]

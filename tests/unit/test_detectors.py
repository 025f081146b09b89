"""Garbage is found; what a small model writes when all is well passes."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from pivotbench.detectors import (
    Finding,
    first_token_collapse,
    impossible_logprobs,
    inspect,
    inspect_load_text,
    token_runs,
)
from pivotbench.detectors.characters import (
    broken_characters,
    character_entropy,
    line_breaks,
    repeated_characters,
)
from pivotbench.detectors.repetition import (
    compression_ratio,
    loop_bytes,
    loop_share,
    repeated_sentences,
    tail_compression_ratio,
)
from pivotbench.detectors.writing_systems import script_mix

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


Detector = Callable[[str], Finding]
ALONE: list[tuple[Detector, str, str]] = [
    # detector, the verdict it owes, the text
    (character_entropy, "suspect", "+!" * 40),
    (character_entropy, "ok", "01001000 01100101 01101100 01101100 01101111"),
    (loop_share, "suspect", "Here it is: " + "la femme, " * 5),
    (loop_share, "ok", "Row, row, row the boat, and gently down the stream we go."),
    (compression_ratio, "suspect", "A mill by the river. " * 120),
    (compression_ratio, "ok", "".join(f"{n:05} step {n} loss {n % 7}.{n % 9} ok\n" for n in range(3000))),
    (tail_compression_ratio, "suspect", " ".join(map(str, range(2000))) + "ab" * 300),
    (tail_compression_ratio, "ok", " ".join(map(str, range(2000)))),
    (repeated_sentences, "ok", "The mill stands by the river. " * 7),
    (line_breaks, "suspect", "No.\n\n\n\n\n\n\n\n\n" * 8),
    (line_breaks, "ok", "1\n2\n3\n4\n5\n6\n7\n8\n9\n" * 4),
    (
        broken_characters,
        "ok",
        "It writes U+FFFD, which looks like this: \ufffd. " + "More words follow. " * 9,
    ),
    (broken_characters, "suspect", "Half a smile \ufffd\ufffd in " + "a few words " * 9),
    (broken_characters, "bad", "Half \ufffd\ufffd of \ufffd\ufffd it " + "a few words " * 4),
    (repeated_characters, "ok", "Wow!!!"),
    (repeated_characters, "suspect", "Wow!!!!!!!!"),
    (repeated_characters, "suspect", "One good sentence of some length comes first here. " + "_" * 250),
    (repeated_characters, "ok", "One good sentence of some length comes first here. " + "_" * 80),
]


@pytest.mark.parametrize(("detector", "owed", "text"), ALONE)
def test_each_detector_judges_by_itself(detector: Detector, owed: str, text: str) -> None:
    assert detector(text).verdict == owed


@pytest.mark.parametrize("unit", ["!", "ab", "la femme au martyre, ", "\n", "的", "word-"])
def test_an_answer_of_32_thousand_tokens_is_inspected_in_no_time(unit: str) -> None:
    text = unit * (130_000 // len(unit))
    began = time.process_time()
    assert any(f.verdict != "ok" for f in inspect(text, None))
    assert time.process_time() - began < 10  # about 0.2 s; a quadratic search would take minutes


def test_a_loop_is_found_behind_the_numbers_of_a_list() -> None:
    looping = "".join(f"{n}. The mill stands by the river.\n" for n in range(1, 12))
    changing = "".join(f"{n}. The mill {word} the river.\n" for n, word in enumerate("abcdefghijk", 1))
    assert loop_share(looping).verdict == "suspect" and loop_share(changing).verdict == "ok"


def test_a_late_loop_counts_by_its_length_and_sooner_where_the_text_ends_in_it() -> None:
    words = [f"word{n}" for n in range(900)]
    good, looping = " ".join(words), " and so on" * 16
    assert loop_share(good + looping).verdict == "ok"
    assert loop_bytes(good + looping).verdict == "suspect"
    assert loop_bytes(good + looping + " " + good).verdict == "ok"
    assert loop_bytes(good + looping * 2 + " " + good).verdict == "suspect"


def test_sentences_that_come_again_out_of_step_are_suspect() -> None:
    one, two = "The mill stands by the river. ", "The miller has gone to town. "
    looping = one + two + one + one + two + two + one + two + two + one
    assert loop_share(looping).verdict == "ok"
    assert repeated_sentences(looping).verdict == "suspect"


@pytest.mark.parametrize(
    "text",
    [
        "дом собака שלום привет ไทย код γλώσσα",
        "weаther thе rаin tоday",  # some vowels are Cyrillic
        "พ่อкот안녕мир 猫дом",
    ],
)
def test_scripts_that_change_within_words_or_from_word_to_word_are_suspect(text: str) -> None:
    assert script_mix(text).verdict == "suspect"


@pytest.mark.parametrize(
    "text",
    [
        "water | вода | νερό | ماء | 水 | 물",
        "在Python中使用list和dict，然后用NumPy计算。",
        "Wi-Fi의 설정을 API로 바꾸고 Python을 설치하세요.",
        "Откройте HTML-код и USB-порт, затем Python и API.",
        "Let Δx be 3μm and λx > 0, so αx + βy = 1.",
        "He said привет and 你好 and שלום, then left.",
    ],
)
def test_what_writers_mix_passes(text: str) -> None:
    assert script_mix(text).verdict == "ok"


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), float("inf"), None, -3.4e38, 0.5])
def test_a_logprob_that_cannot_be_one_is_bad(value: float | None) -> None:
    assert impossible_logprobs([-0.1, value, -2.0]).verdict == "bad"
    assert "bad" in {f.verdict for f in inspect("Fine words.", [1, 2, 3], [-0.1, value, -2.0])}


def test_logprobs_of_likely_and_unlikely_tokens_pass() -> None:
    assert impossible_logprobs([0.0, -0.0, -12.4, -40.0, 1e-6]).verdict == "ok"
    assert impossible_logprobs([]).verdict == "ok"


def test_answers_that_all_begin_alike_are_suspect_and_never_bad() -> None:
    alike = ["The sea is wide.", "The mill stands.", "The answer is 4.", "The cat sleeps."]
    assert first_token_collapse(alike).verdict == "suspect"
    assert first_token_collapse([*alike, "No."]).verdict == "ok"
    assert first_token_collapse(alike[:3]).verdict == "ok"
    assert first_token_collapse(["<think>\nOne", "<think>\nTwo", "<think> Three", "Four"]).verdict == "ok"
    assert first_token_collapse(["a", "b", "c", "d"], [[7, 1], [7, 2], [7], [7, 9]]).verdict == "suspect"


def test_token_runs_need_ids() -> None:
    assert token_runs([0] * 20).verdict == "suspect"
    assert token_runs([0] * 40).verdict == "bad"
    assert token_runs([5, 9, 9, 9, 2]).verdict == "ok"
    assert "token_runs" in [f.name for f in inspect("text", [1, 2])]
    assert "token_runs" not in [f.name for f in inspect("text", None)]

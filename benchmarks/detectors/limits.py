"""Generators of what the detectors find in part or not at all; reported so that nobody hopes for it."""

from __future__ import annotations

import random

from benchmarks.detectors import answers
from benchmarks.detectors.samples import Makers
from benchmarks.detectors.words import PROSE, phrase, prose, sentence

MAKERS = Makers()


def _loop(dice: random.Random, size_bytes: int) -> str:
    loop = " " + phrase(dice, dice.randint(1, 4))
    return loop * max(size_bytes // len(loop), 2)


@MAKERS.family("limit", "report", 40)
def a_loop_of_50_bytes_at_the_end(dice: random.Random) -> str:
    return prose(dice, 12) + _loop(dice, 50)


@MAKERS.family("limit", "report", 40)
def a_loop_of_100_bytes_at_the_end(dice: random.Random) -> str:
    return prose(dice, 12) + _loop(dice, 100)


@MAKERS.family("limit", "report", 40)
def a_loop_of_150_bytes_at_the_end(dice: random.Random) -> str:
    return prose(dice, 12) + _loop(dice, 150)


@MAKERS.family("limit", "report", 40)
def a_loop_of_200_bytes_in_the_middle(dice: random.Random) -> str:
    return f"{prose(dice, 6)}{_loop(dice, 200)} {prose(dice, 6)}"


@MAKERS.family("limit", "report", 40)
def a_loop_that_changes_a_word_each_time(dice: random.Random) -> str:
    words = phrase(dice, 8).split()
    return " ".join(" ".join([*words[:4], dice.choice(words), *words[5:]]) for _ in range(20))


@MAKERS.family("limit", "report", 40)
def words_of_real_answers_in_no_order(dice: random.Random) -> str:
    words = answers.beginning(dice, 1.0).split()
    return " ".join(dice.sample(words, len(words)))


@MAKERS.family("limit", "report", 40)
def the_answer_to_another_prompt(dice: random.Random) -> str:
    return answers.beginning(dice, 1.0)


@MAKERS.family("limit", "report", 40)
def pieces_of_english_and_chinese_alone(dice: random.Random) -> str:
    texts = [sentence(dice) if n % 2 else dice.choice(PROSE["chinese"]) for n in range(60)]
    return "".join(text[begin : begin + 3] for text in texts for begin in [dice.randrange(len(text) - 3)])

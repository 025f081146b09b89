"""The stored answers of the embedded model (answers/*.jsonl) as families, labelled by how they were made.

sampled   good, unless the 4-gram criterion below says that the answer loops
greedy    judged by that criterion alone: weak (it loops) or good
driven    weak: what a working model writes past its natural end, whatever it is
broken    garbage of a real engine; reported apart, for some of it is words without sense
"""

from __future__ import annotations

import json
import random
import re
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "answers"
FIT_KINDS = ("explain", "story", "code", "sum")
REPORT_KINDS = ("mail", "list", "poem", "data", "talk", "language")
LOOPING = 0.4  # of 54 greedy answers none lies between 0.35 and 0.50


@cache
def stored(way: str) -> tuple[dict[str, Any], ...]:
    """Return the rows of one way of asking."""
    lines = (FOLDER / f"{way}.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(json.loads(line) for line in lines)


def repeated_4_grams(text: str) -> float:
    """Return the share of 4-grams of words that stand before: seq-rep-4 of Welleck et al. 2019.

    Words are letters alone, so that the numbers of a list make no difference. The measure looks at no order
    and no period, and so is none of the detectors in other words.
    """
    words = re.findall(r"[^\W\d_]+", text.lower())
    grams = [tuple(words[n : n + 4]) for n in range(len(words) - 3)]
    return 1 - len(set(grams)) / len(grams) if grams else 0.0


def loops(row: dict[str, Any]) -> bool:
    """Return whether so many of an answer's 4-grams are repeats that it goes round in circles."""
    return repeated_4_grams(row["text"]) >= LOOPING


@cache
def good_texts(kinds: tuple[str, ...]) -> tuple[str, ...]:
    """Return the sampled answers to prompts of these kinds that do not loop."""
    return tuple(r["text"] for r in stored("sampled") if r["kind"] in kinds and not loops(r))


def beginning(dice: random.Random, share: float) -> str:
    """Return the first part of a good answer of the report kinds."""
    text = dice.choice([t for t in good_texts(REPORT_KINDS) if len(t) >= 80])
    return text[: int(len(text) * share)]

"""Deterministic, sensible text for a prompt, and the steps in which a decoder would give it out."""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sglang.script import GARBAGE

LEXICON = """
subject engineer gardener pilot teacher sailor baker painter doctor farmer singer judge miner
verb measures repairs studies carries sketches weighs sorts polishes follows opens lifts counts
trait quiet bright narrow heavy curious distant early gentle hollow modern plain rapid
object bridge ladder engine kettle window compass basket mirror lantern bicycle barrel clock
place harbour orchard library valley station workshop market island village tunnel museum forest
time morning winter lunch sunset Friday summer breakfast midnight autumn dinner spring noon
"""
WORDS = {kind: words for kind, *words in map(str.split, LEXICON.strip().splitlines())}
SENTENCES = [
    "The trait subject verb the trait object near the place.",
    "Before time, a subject from the place verb one object.",
    "Every trait object in this place is older than its subject.",
    "After time the subject verb another object and leaves the trait place.",
    "Nobody verb a trait object at time.",
]


@dataclass(frozen=True)
class Step:
    """What one decoding step yields: the words of its tokens, and whether a draft was verified."""

    tokens: tuple[str, ...]
    proposed: int
    accepted: int


def words_of(prompt: str, error: int = 0) -> Iterator[str]:
    """Yield the answer's tokens: a sum if one is asked for, off by ``error``, then sentences without end."""
    if sums := re.findall(r"(\d+)\s*\+\s*(\d+)", prompt):
        left, right = sums[-1]
        yield from tokens_of(f"The answer is {int(left) + int(right) + error}.")
        yield ""
    seen = " ".join(re.findall(r"\w+", prompt)[-6:])
    yield from tokens_of(f"You wrote about {seen}.")
    # A checksum, not hash(): the same in every process.
    dice = random.Random(zlib.crc32(prompt.encode()))
    while True:
        words = dice.choice(SENTENCES).split()
        filled = (re.sub(r"^[a-z]+", lambda m: dice.choice(WORDS.get(m[0], [m[0]])), word) for word in words)
        yield from tokens_of(" " + " ".join(filled))


def answer(
    prompt: str, *, limit: int, ignore_eos: bool, garbage: str, error: int = 0
) -> tuple[list[str], str]:
    """Return at most ``limit`` tokens and the finish reason, ``stop`` or ``length``."""
    if garbage:
        return [GARBAGE[garbage]] * limit, "length"
    tokens: list[str] = []
    for token in words_of(prompt, error):
        if token == "" and not ignore_eos:
            return tokens, "stop"
        if len(tokens) == limit:
            break
        if token:
            tokens.append(token)
    return tokens, "length"


def steps(tokens: list[str], *, length: float | None, drafted: int) -> Iterator[Step]:
    """Cut tokens into decoding steps that accept ``length`` tokens on average (None: no speculation)."""
    if length is None:
        yield from (Step((token,), 0, 0) for token in tokens)
        return
    given, owed = 0, 0.0
    while given < len(tokens):
        owed += length
        take = max(1, min(round(owed), drafted + 1, len(tokens) - given))
        owed -= take
        yield Step(tuple(tokens[given : given + take]), drafted, take - 1)
        given += take


def acceptance(rules: list[str], prompt: str) -> float:
    """Return the acceptance length of the first rule whose word is in the prompt, or the plain number."""
    plain = 1.0
    for rule in rules:
        word, equals, length = rule.rpartition("=")
        if not equals:
            plain = float(length)
        elif word.lower() in prompt.lower():
            return float(length)
    return plain


def token_id(token: str) -> int:
    """Return a stable id for a token."""
    return 1000 + zlib.crc32(token.encode()) % 50_000


def forced(ids: list[int], shift: float) -> list[list[Any]]:
    """Return a prompt's own logprobs as SGLang does: the first has none, each follows from what is before."""
    values = [-(zlib.crc32(repr(ids[: n + 1]).encode()) % 500) / 100 - shift for n in range(len(ids))]
    return [[value if n else None, ids[n], None] for n, value in enumerate(values)]


def tokens_of(text: str) -> list[str]:
    """Return a text's tokens: words and signs, each with the blanks before it."""
    return re.findall(r"\s*\w+|\s*[^\w\s]", text)

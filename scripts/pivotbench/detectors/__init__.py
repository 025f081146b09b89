"""Signs of a broken backend that need no right answer to compare with.

Each detector is a pure function that returns a figure and the threshold it is judged by. Thresholds are
chosen so that a text which a working model can write passes; where a text could be either, the judgement
belongs to a comparison with another configuration, not here.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import log2
from typing import Literal


@dataclass(frozen=True)
class Finding:
    """One detector's figure for one text, the threshold it was held against, and the verdict."""

    name: str
    figure: float
    threshold: float
    verdict: Literal["ok", "bad"]


# What people draw lines with: rules in Markdown, leaders in a table of contents, blanks to fill in.
_RULERS = frozenset("-=_*#~.─━═ ")


def _run_allowed(character: str, share: float) -> int:
    if character in _RULERS and share < 0.9:
        return 200
    if share < 0.5:
        return 48
    if character.isdigit():
        return 32
    if character.isalpha():
        return 12
    return 4


def repeated_characters(text: str) -> Finding:
    """Longest run of one character, against the run that text may have.

    A backend whose logits are NaN or zero emits one token for ever (seen: `!!!!!!!!!!!!!!!!`, `++++`,
    newlines). Bad from 48 in a run below half of the text; from half of the text on 4 for punctuation
    ("!!!" is speech), 12 for letters (a long "hmm"), 32 for digits (10 to the 30th written out). Characters
    one draws lines with may reach 200 (lines are 80 to 120 wide) unless they are 0.9 of the text.
    """
    stripped = text.strip(" ")
    runs = [(key, len(list(group))) for key, group in groupby(stripped)]
    rated = [
        (
            length / _run_allowed(key, length / len(stripped)),
            length,
            _run_allowed(key, length / len(stripped)),
        )
        for key, length in runs
    ]
    _, length, allowed = max(rated, default=(0.0, 0, 4))
    return Finding("repeated_characters", length, allowed, "bad" if length >= allowed else "ok")


_UNIT = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w+|[^\w\s]")
LOOP_PERIOD_LONGEST = 24
LOOP_REPEATS_LEAST = 5


def loop_share(text: str) -> Finding:
    """Share of the words in the longest stretch that repeats one phrase without a break.

    A phrase has 1 to 24 words (or CJK characters) and comes at least 5 times in a row. Refrains, lists and
    tables repeat words but change something in each line, and so are no such stretch. Bad from 0.4 of the
    text, 0.9 if the phrase has no letter (rows of zeros in a dump), for texts of 10 words or more.
    """
    units = _UNIT.findall(text)
    best, threshold = 0.0, 0.4
    for period in range(1, min(LOOP_PERIOD_LONGEST, len(units) // LOOP_REPEATS_LEAST) + 1):
        matched = 0
        for i in range(period, len(units)):
            matched = matched + 1 if units[i] == units[i - period] else 0
            if matched + period < LOOP_REPEATS_LEAST * period:
                continue
            share = (matched + period) / len(units)
            lettered = any(c.isalpha() for unit in units[i - period + 1 : i + 1] for c in unit)
            limit = 0.4 if lettered else 0.9
            if share / limit > best / threshold:
                best, threshold = share, limit
    return Finding("loop_share", best, threshold, "bad" if best >= threshold and len(units) >= 10 else "ok")


def compression_ratio(text: str) -> Finding:
    """Bytes of UTF-8 over bytes after zlib, for texts of 128 bytes or more.

    Whisper's decoder rejects above 2.4, for speech (Radford et al. 2022, section 4.5). Written answers hold
    tables, JSON and code, which reach 3 to 6; one phrase repeated reaches 12 and more within 300 bytes. Bad
    from 10.
    """
    data = text.encode("utf-8", errors="replace")
    ratio = len(data) / len(zlib.compress(data)) if len(data) >= 128 else 0.0
    return Finding("compression_ratio", ratio, 10.0, "bad" if ratio >= 10.0 else "ok")


def character_entropy(text: str) -> Finding:
    """Shannon entropy of the characters in bits, for texts of 32 characters or more.

    English prose has about 4.1 (Shannon 1951 gives 4.14 for single letters), a sequence of DNA 2, zeros
    and ones in groups of eight 1.4; two characters by turns have 1. Bad below 1.1.
    """
    counts = Counter(text)
    total = len(text)
    if total < 32:
        return Finding("character_entropy", log2(total) if total else 0.0, 0.0, "ok")
    bits = -sum(n / total * log2(n / total) for n in counts.values())
    return Finding("character_entropy", bits, 1.1, "bad" if bits < 1.1 else "ok")


def broken_characters(text: str) -> Finding:
    """Share of U+FFFD, control, surrogate and unassigned characters.

    The last character may be U+FFFD: an answer that ends at its token limit can end inside one. Bad
    from 0.02 if there are two or more; a working tokenizer joins bytes into whole characters.
    """
    kept = text[:-1] if text.endswith("\ufffd") else text
    broken = sum(c == "\ufffd" or (unicodedata.category(c) in _BROKEN and c not in "\n\r\t\f") for c in kept)
    share = broken / len(kept) if kept else 0.0
    return Finding("broken_characters", share, 0.02, "bad" if share >= 0.02 and broken >= 2 else "ok")


_BROKEN = frozenset({"Cc", "Cs", "Cn"})


def empty(text: str) -> Finding:
    """Visible characters in the text; bad below 1, for an answer of nothing is none."""
    visible = sum(not c.isspace() and unicodedata.category(c) not in ("Cc", "Cf") for c in text)
    return Finding("empty", visible, 1, "bad" if visible < 1 else "ok")


def token_runs(token_ids: Sequence[int]) -> Finding:
    """Longest run of one token id; bad from 16 if it is half of the answer, from 64 in any case.

    Tokenizers merge what texts repeat (spaces, dashes, line breaks), so a line of 80 dashes is a few tokens.
    """
    longest = max((len(list(group)) for _, group in groupby(token_ids)), default=0)
    threshold = 16 if longest * 2 >= len(token_ids) else 64
    return Finding("token_runs", longest, threshold, "bad" if longest >= threshold else "ok")


_TEXT_DETECTORS: tuple[Callable[[str], Finding], ...] = (
    empty,
    repeated_characters,
    broken_characters,
    loop_share,
    compression_ratio,
    character_entropy,
)


def inspect(text: str, token_ids: Sequence[int] | None) -> list[Finding]:
    """Return every detector's finding on one smoke answer; token runs only where there are ids."""
    findings = [detector(text) for detector in _TEXT_DETECTORS]
    return findings + ([token_runs(token_ids)] if token_ids is not None else [])


LOAD_RUN_SHARE = 0.9


def inspect_load_text(text: str) -> list[Finding]:
    """Return what broken numerics show in an answer received under load.

    There every answer is driven past its natural end, and small models then loop, or draw lines, without
    anything being broken. So a repeated character counts only where it is 0.9 of the text: from the first
    tokens on.
    """
    run = repeated_characters(text)
    share = run.figure / len(text.strip(" ")) if text.strip(" ") else 0.0
    verdict: Literal["ok", "bad"] = "bad" if run.verdict == "bad" and share >= LOAD_RUN_SHARE else "ok"
    return [empty(text), Finding(run.name, run.figure, run.threshold, verdict), broken_characters(text)]


def expectation_met(
    text: str, *, contains: str | None = None, matches: str | None = None, equals: str | None = None
) -> bool:
    """Return whether a text meets every expectation given.

    ``contains``: the text holds it, letter case aside; ``matches``: the regular expression is found in it;
    ``equals``: it is the text, space at both ends aside. Raises re.error for a bad expression.
    """
    return (
        (contains is None or contains.casefold() in text.casefold())
        and (matches is None or re.search(matches, text) is not None)
        and (equals is None or text.strip() == equals.strip())
    )

"""Signs in the characters of a text: none at all, one alone, few kinds, and such that nobody writes."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from math import log2

from pivotbench.detectors.finding import Finding, verdict


def empty(text: str) -> Finding:
    """Visible characters in the text; bad below 1, for an answer of nothing is none."""
    visible = sum(
        n for c, n in Counter(text).items() if not c.isspace() and unicodedata.category(c) not in ("Cc", "Cf")
    )
    return Finding("empty", visible, 1, verdict(suspect=False, bad=visible < 1))


LINE_BREAK_SHARE = 0.6


def line_breaks(text: str) -> Finding:
    """Share of line breaks in a text of 32 characters or more; suspect from 0.6.

    Weights of which a part was zeroed yield blank lines with a word now and then. A list of single digits
    has 0.5, code with blank lines 0.1.
    """
    share = text.count("\n") / len(text) if len(text) >= 32 else 0.0
    return Finding("line_breaks", share, LINE_BREAK_SHARE, verdict(suspect=share >= LINE_BREAK_SHARE))


# What people draw lines with: rules in Markdown, leaders in a table of contents, blanks to fill in.
_RUN = re.compile(r"(.)\1+", re.DOTALL)
_RULERS = frozenset("-=_*#~.─━═│ ")
ONE_CHARACTER_SHARE = 0.9
ONE_PUNCTUATION_LEAST = 8
ONE_CHARACTER_LEAST = 48


def repeated_characters(text: str) -> Finding:
    """Longest run of one character, against the run that a text may have.

    A backend whose logits are NaN or zero emits one token for ever (seen: `!!!!!!!!!!!!!!!!`, `++++`, dots,
    newlines). Suspect from 48 in a run below half of the text; from half of the text on 4 for punctuation
    ("!!!" is speech), 12 for letters (a long "hmm"), 32 for digits (10 to the 30th written out). Characters
    one draws lines with may reach 200 (lines are 80 to 120 wide) unless they are 0.9 of the text.

    Bad where the run is the whole text, from 8 for punctuation that draws no lines, from 48 for any
    character; for such punctuation also from 48 after a first word (0.9 of the text).
    """
    stripped = text.strip(" ")
    runs = [(run[1], len(run[0])) for run in _RUN.finditer(stripped)]
    rated = [
        (length / allowed, length, allowed, key)
        for key, length in runs
        for allowed in [_run_allowed(key, length / len(stripped))]
    ]
    if not rated:
        return Finding("repeated_characters", min(len(stripped), 1), 4, "ok")
    _, length, allowed, key = max(rated)
    share = length / len(stripped)
    odd = _is_punctuation(key) and key not in _RULERS
    bad = (length == len(stripped) and length >= (ONE_PUNCTUATION_LEAST if odd else ONE_CHARACTER_LEAST)) or (
        odd and share >= ONE_CHARACTER_SHARE and length >= ONE_CHARACTER_LEAST
    )
    return Finding("repeated_characters", length, allowed, verdict(suspect=length >= allowed, bad=bad))


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


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character)[0] == "P" or unicodedata.category(character) in ("Sm", "Sc", "Sk")


ENTROPY_LEAST_BITS = 1.1


def character_entropy(text: str) -> Finding:
    """Shannon entropy of the characters in bits, for texts of 32 characters or more.

    English prose has about 4.1 (Shannon 1951 gives 4.14 for single letters), a sequence of DNA 2, zeros
    and ones in groups of eight 1.4; two characters by turns have 1. Suspect below 1.1.
    """
    counts = Counter(text)
    total = len(text)
    if total < 32:
        return Finding("character_entropy", log2(total) if total else 0.0, 0.0, "ok")
    bits = -sum(n / total * log2(n / total) for n in counts.values())
    return Finding("character_entropy", bits, ENTROPY_LEAST_BITS, verdict(suspect=bits < ENTROPY_LEAST_BITS))


_BROKEN = frozenset({"Cc", "Cs", "Cn"})
BROKEN_SUSPECT_SHARE = 0.01
BROKEN_BAD_SHARE = 0.05
BROKEN_BAD_LEAST = 4


def broken_characters(text: str) -> Finding:
    """Share of U+FFFD, control, surrogate and unassigned characters.

    A working tokenizer joins bytes into whole characters. Two exceptions: an answer that ends at its token
    limit can end inside a character, so the last one may be U+FFFD; and a model may now and then write half
    a character (a small one at a high temperature), or name U+FFFD. Suspect from two that are 0.01 of the
    text, bad from four that are 0.05.
    """
    kept = text[:-1] if text.endswith("\ufffd") else text
    broken = sum(
        n
        for c, n in Counter(kept).items()
        if c == "\ufffd" or (unicodedata.category(c) in _BROKEN and c not in "\n\r\t\f")
    )
    share = broken / len(kept) if kept else 0.0
    return Finding(
        "broken_characters",
        share,
        BROKEN_SUSPECT_SHARE,
        verdict(
            suspect=broken >= 2 and share >= BROKEN_SUSPECT_SHARE,
            bad=broken >= BROKEN_BAD_LEAST and share >= BROKEN_BAD_SHARE,
        ),
    )

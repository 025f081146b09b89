"""A soup of scripts: what a vocabulary of all languages yields when the choice among its tokens is noise."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from pivotbench.detectors.finding import Finding, verdict

# First word of a character's Unicode name -> script. Chinese and Japanese are one: they share characters.
_SCRIPTS = {
    "LATIN": "Latin",
    "CYRILLIC": "Cyrillic",
    "GREEK": "Greek",
    "CJK": "Han",
    "HIRAGANA": "Kana",
    "KATAKANA": "Kana",
    "HANGUL": "Hangul",
    "ARABIC": "Arabic",
    "ARMENIAN": "Armenian",
    "BENGALI": "Bengali",
    "DEVANAGARI": "Devanagari",
    "ETHIOPIC": "Ethiopic",
    "GEORGIAN": "Georgian",
    "GUJARATI": "Gujarati",
    "GURMUKHI": "Gurmukhi",
    "HEBREW": "Hebrew",
    "KANNADA": "Kannada",
    "KHMER": "Khmer",
    "LAO": "Lao",
    "MALAYALAM": "Malayalam",
    "MYANMAR": "Myanmar",
    "ORIYA": "Oriya",
    "SINHALA": "Sinhala",
    "TAMIL": "Tamil",
    "TELUGU": "Telugu",
    "THAI": "Thai",
    "TIBETAN": "Tibetan",
}

# Scripts that put no space around a foreign word.
_UNSPACED = frozenset({"Han", "Kana", "Hangul", "Thai", "Khmer", "Lao", "Myanmar", "Tibetan"})
# Scripts that share words with each other.
_COUSINS = (frozenset({"Han", "Kana"}), frozenset({"Han", "Hangul"}))
SYMBOL_LETTERS_MOST = 2  # Greek letters serve as symbols: "Δx", "μm"


@dataclass
class Run:
    """Letters of one script in a row, and what stood before them since the last letter."""

    script: str
    letters: int
    gap: str


@cache
def script_of(character: str) -> str | None:
    """Return the script of a letter, or None for all other characters."""
    return _SCRIPTS.get(unicodedata.name(character, "").partition(" ")[0]) if character.isalpha() else None


def script_runs(text: str) -> Iterator[Run]:
    """Yield the runs of letters; a gap of any characters but marks ends one."""
    run: Run | None = None
    gap = ""
    for character in text:
        script = script_of(character)
        if script is None:
            if unicodedata.category(character)[0] != "M":
                gap += character if len(gap) < 2 else ""
        elif run and script == run.script and not gap:
            run.letters += 1
        else:
            if run:
                yield run
            run, gap = Run(script, 1, gap), ""
    if run:
        yield run


def _abrupt(before: Run, after: Run) -> bool:
    pair = {before.script, after.script}
    if len(pair) == 1 or after.gap not in ("", " ") or pair in _COUSINS:
        return False
    if after.gap == " " or pair & _UNSPACED:
        return "Latin" not in pair
    return "Greek" not in pair or min(before.letters, after.letters) > SYMBOL_LETTERS_MOST


SCRIPT_MIX_SHARE = 0.05
SCRIPT_MIX_LEAST = 3


def script_mix(text: str) -> Finding:
    """Changes of script where no writing has one, as a share of the words.

    Abrupt are a change inside a word ("wеather" of two alphabets), and one from word to word between
    scripts of which none is Latin. Not so what writers do: Latin words among others, foreign words within
    Chinese, Japanese, Korean or Thai, Greek symbols, and any change across punctuation or a line (glossaries,
    tables of translations). Suspect from 3 changes that are 0.05 of the words. A soup of Latin and Chinese
    alone passes: technical Chinese looks the same by this measure.
    """
    if len({script_of(c) for c in set(text)} - {None}) < 2:
        return Finding("script_mix", 0.0, SCRIPT_MIX_SHARE, "ok")
    words, abrupt = 0, 0
    before: Run | None = None
    for run in script_runs(text):
        words += 1
        abrupt += before is not None and _abrupt(before, run)
        before = run
    share = abrupt / words if words else 0.0
    suspect = abrupt >= SCRIPT_MIX_LEAST and share >= SCRIPT_MIX_SHARE
    return Finding("script_mix", share, SCRIPT_MIX_SHARE, verdict(suspect=suspect))

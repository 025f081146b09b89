"""Signs of a text that goes round in circles: loops of a phrase, and how far the text can be packed."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from functools import lru_cache

from pivotbench.detectors.finding import Finding, verdict

GRAM_CHARACTERS = 8
# A phrase of so many characters makes a loop from so many repeats on.
LOOP_REPEATS_LEAST = ((100, 2.5), (24, 4.0), (1, 5.0))

# Where a phrase may begin: at a word, a sign, a character of a script without spaces, within a long word.
_BEGINNING = re.compile(r"\b\w|[^\w\s]|[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w(?=\w{16})")


@dataclass(frozen=True)
class Loop:
    """A stretch of text that repeats one phrase without a break, and whether the whole text ends in it."""

    text: str
    phrase: str
    final: bool

    @property
    def repeats(self) -> float:
        return len(self.text) / len(self.phrase)

    @property
    def size_bytes(self) -> int:
        return len(self.text.encode("utf-8", errors="replace"))

    @property
    def lettered(self) -> bool:
        return any(c.isalpha() for c in self.phrase)


# What numbers the items of a list: "12. ", "Step 12: ".
_ENUMERATOR = re.compile(r"^[ \t]*(?:\w+ )?\d+[.):] ", re.MULTILINE)


@lru_cache(maxsize=1)  # two detectors ask for the same text in a row
def loops(text: str) -> tuple[Loop, ...]:
    """Return every stretch that repeats a phrase of two or more kinds of characters often enough.

    That is 5 times in a row, 4 for a phrase of 24 characters, 2.5 for one of 100; a number that leads the
    line is no difference. Time is linear in the text: where a gram of 8 characters comes again, its distance
    from the last one is a period, followed as far as it holds.
    """
    text = _ENUMERATOR.sub("", text)
    found: list[Loop] = []
    latest: dict[str, int] = {}
    period = begin = at = 0

    def close(end: int) -> None:
        loop = Loop(text[begin:end], text[begin : begin + period], not text[end:].strip())
        least = next(repeats for size, repeats in LOOP_REPEATS_LEAST if period >= size)
        if loop.repeats >= least and len(set(loop.phrase)) > 1:
            found.append(loop)

    for match in _BEGINNING.finditer(text):
        before, at = at, match.start()
        if period and text[before:at] != text[before - period : at - period]:
            close(before)
            period = 0
        gram = text[at : at + GRAM_CHARACTERS]
        if not period and gram in latest:
            begin = latest[gram]
            period = at - begin
        latest[gram] = at
    if period:
        same = text[at:] == text[at - period : len(text) - period]
        close(len(text) if same else at)
    return tuple(found)


LOOP_SHARE = 0.5
LOOP_SHARE_UNLETTERED = 0.9
LOOP_SHARE_LEAST_BYTES = 40


def loop_share(text: str) -> Finding:
    """Share of the text in the longest loop (see `loops`).

    Refrains, lists and tables repeat words but change something in each line, and so are no loop. Suspect
    from 0.5 of the text and 40 bytes (a short table in HTML with empty cells has 0.47), from 0.9 if the
    phrase has no letter (rows of zeros in a dump).
    """
    total = len(text.strip())
    rated = [
        (len(loop.text) / total / limit, limit)
        for loop in loops(text)
        for limit in [LOOP_SHARE if loop.lettered else LOOP_SHARE_UNLETTERED]
        if loop.size_bytes >= LOOP_SHARE_LEAST_BYTES
    ]
    rating, limit = max(rated, default=(0.0, LOOP_SHARE))
    return Finding("loop_share", rating * limit, limit, verdict(suspect=rating >= 1))


LOOP_BYTES = 240
LOOP_BYTES_FINAL = 100
LOOP_BYTES_UNLETTERED = 400


def loop_bytes(text: str) -> Finding:
    """Bytes (UTF-8) of the longest loop, wherever it lies: good text may turn into one late.

    Suspect from 240 (the row of a table in HTML with ten empty cells has 180); from 100 where the text ends
    in it, for a loop in a model seldom ends by itself; from 400 if the phrase has no letter (rows of zeros).
    """
    rated = [(loop.size_bytes / limit, limit) for loop in loops(text) for limit in [_bytes_allowed(loop)]]
    rating, limit = max(rated, default=(0.0, LOOP_BYTES))
    return Finding("loop_bytes", rating * limit, limit, verdict(suspect=rating >= 1))


def _bytes_allowed(loop: Loop) -> int:
    if not loop.lettered:
        return LOOP_BYTES_UNLETTERED
    return LOOP_BYTES_FINAL if loop.final else LOOP_BYTES


_SENTENCE_END = re.compile(r"[.!?\n\u3002]+")
_WORD = re.compile(r"[^\W\d_]+")
SENTENCE_WORDS_LEAST = 5
SENTENCES_LEAST = 8
REPEATED_SENTENCES_SHARE = 0.5


def repeated_sentences(text: str) -> Finding:
    """Share of the sentences that stand word for word before: loops that change their step.

    Counted are sentences and lines of 5 words or more, from 8 on; most lines of code and tables are none,
    and a poem with a refrain of two lines after each three has 0.4. Suspect from 0.5.
    """
    parts = (part.strip() for part in _SENTENCE_END.split(text))
    sentences = [part for part in parts if len(_WORD.findall(part)) >= SENTENCE_WORDS_LEAST]
    share = 1 - len(set(sentences)) / len(sentences) if len(sentences) >= SENTENCES_LEAST else 0.0
    suspect = share >= REPEATED_SENTENCES_SHARE
    return Finding("repeated_sentences", share, REPEATED_SENTENCES_SHARE, verdict(suspect=suspect))


WINDOW_BYTES = 2048
TAIL_BYTES = 512
COMPRESSION_LEAST_BYTES = 128
COMPRESSION_RATIO = 20.0
TAIL_COMPRESSION_RATIO = 10.0


def compression_ratio(text: str) -> Finding:
    """Bytes of UTF-8 over bytes after zlib, the highest of windows of 2048 bytes, each half over the last.

    Whisper's decoder rejects above 2.4, for speech (Radford et al. 2022, section 4.5). Written answers hold
    tables, logs and indented JSON, which reach 9; one phrase repeated reaches 30 and more. A window of one
    size keeps a long log, whose ratio grows with its length, from looking like a loop. Suspect from 20, for
    texts of 128 bytes or more.
    """
    data = text.encode("utf-8", errors="replace")
    last = max(len(data) - WINDOW_BYTES, 0)
    places = [*range(0, last, WINDOW_BYTES // 2), last]
    ratio = max(_ratio(data[at : at + WINDOW_BYTES]) for at in places)
    return Finding("compression_ratio", ratio, COMPRESSION_RATIO, verdict(suspect=ratio >= COMPRESSION_RATIO))


def tail_compression_ratio(text: str) -> Finding:
    """The same of the last 512 bytes alone, which a loop shortly before the end fills; suspect from 10.

    Good text reaches 5 there.
    """
    ratio = _ratio(text.encode("utf-8", errors="replace")[-TAIL_BYTES:])
    suspect = ratio >= TAIL_COMPRESSION_RATIO
    return Finding("tail_compression_ratio", ratio, TAIL_COMPRESSION_RATIO, verdict(suspect=suspect))


def _ratio(data: bytes) -> float:
    return len(data) / len(zlib.compress(data)) if len(data) >= COMPRESSION_LEAST_BYTES else 0.0

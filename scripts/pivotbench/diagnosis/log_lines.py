"""Reading a log of any size: its suspicious lines and its end, in one pass and a few megabytes of memory.

What makes a huge log huge is the same lines over and over, so a line is looked at by its shape, its text
without digits: one without a suspicious word is remembered, one that came very often tells nothing new.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

LAST_LINES = 5
LONGEST_LINE_BYTES = 1 << 16
OFTEN = 200

_BLOCK_BYTES = 1 << 18
_SHAPES_BYTES = 16 << 20
_COLOUR = re.compile(r"\x1b\[[\d;]*m")


def suspicious_lines(path: Path, words: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield, numbered from 0, the lines that have one of ``words`` (given in lower case), and the last few.

    Of lines that differ in digits alone the first 200 are shown. What a progress bar overwrites counts as
    lines of its own; a line beyond 64 KiB is cut there. A log that cannot be read has no lines.
    """
    try:
        stream = path.open("rb")
    except OSError:
        return
    wanted = [word.encode() for word in words]
    shapes: dict[bytes, int] = {}
    begin, shown, room = 0, -1, _SHAPES_BYTES
    ending: list[tuple[int, bytes]] = []
    with stream:
        for block in _blocks(stream):
            lines = block.replace(b"\r", b"\n").split(b"\n")
            for number, line in enumerate(lines, begin):
                shape = line.translate(None, b"0123456789")
                times = shapes.get(shape, 0)
                if times >= OFTEN:
                    continue
                suspicious = _has_any(line, wanted)
                if times or room > len(shape):
                    room -= 0 if times else len(shape)
                    shapes[shape] = times + 1 if suspicious else OFTEN
                if suspicious:
                    shown = number
                    yield number, _text(line)
            begin += len(lines)
            last = [(begin - back, lines[-back]) for back in range(min(len(lines), 4 * LAST_LINES), 0, -1)]
            ending = [*ending, *((number, line) for number, line in last if line.strip())][-LAST_LINES:]
    yield from ((number, _text(line)) for number, line in ending if number > shown)


def plain(line: str) -> str:
    """Return a line without colours and the blanks after it."""
    return _COLOUR.sub("", line).rstrip()


def _blocks(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the content in parts that end with a line, without its break, save where a line is longer."""
    rest = b""
    while block := stream.read(_BLOCK_BYTES):
        whole, found, tail = (rest + block).rpartition(b"\n")
        if found or len(tail) > _BLOCK_BYTES:
            yield whole if found else tail
            rest = tail if found else b""
        else:
            rest = tail
    if rest:
        yield rest


def _has_any(text: bytes, words: Sequence[bytes]) -> bool:
    lowered = text.lower()
    return any(word in lowered for word in words)


def _text(line: bytes) -> str:
    return plain(line[:LONGEST_LINE_BYTES].decode(errors="replace"))

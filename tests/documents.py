"""The documents people read, and the commands in them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [
    *(
        ROOT / name
        for name in ("README.md", "CONTRIBUTING.md", "config/README.md", "config/prompts/README.md")
    ),
    *sorted(ROOT.glob("docs/*.md")),
    *sorted(ROOT.glob("docs/campaigns/**/README.md")),
    *sorted(ROOT.glob("benchmarks/*/README.md")),
    *sorted(ROOT.glob("tests/**/README.md")),
]

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PROGRAM = r"(?:[A-Z_]+=\S+ )*(?:snakemake|make|(?:\S*/)?python) "
_INLINE = re.compile(rf"`({_PROGRAM}[^`]+)`")
_LOOKS_LIKE_ONE = re.compile(rf"^{_PROGRAM}", re.MULTILINE)
_VARIABLE = re.compile(r"([A-Z_]+)=(.*)")


@dataclass(frozen=True)
class Command:
    """One command of a document: the variables set for it, and its words."""

    variables: tuple[tuple[str, str], ...]
    words: tuple[str, ...]

    @property
    def text(self) -> str:
        """The words as one would type them."""
        return shlex.join(self.words)


@dataclass(frozen=True)
class Block:
    """Commands that are run one after the other: a fenced block, or one span within a line."""

    document: Path
    line: int
    commands: tuple[Command, ...]

    def __str__(self) -> str:
        return f"{self.document.relative_to(ROOT)}:{self.line}"


def blocks(document: Path) -> Iterator[Block]:
    """Yield every block of commands in a document: those fenced as ``sh``, and spans that begin like one."""
    text = document.read_text(encoding="utf-8")
    for found in _FENCE.finditer(text):
        if found[1] == "sh":
            yield Block(document, _line(text, found.start()), _commands(found[2]))
    # Fences become blank lines, so that the numbers stay.
    prose = _FENCE.sub(lambda m: "\n" * m[0].count("\n"), text)
    for found in _INLINE.finditer(prose):
        yield Block(document, _line(prose, found.start()), _commands(found[1].replace("\n", " ")))


def unmarked_commands(document: Path) -> list[str]:
    """Return what looks like commands in blocks that are not fenced as ``sh``: no test would run them."""
    text = document.read_text(encoding="utf-8")
    others = [block for language, block in _FENCE.findall(text) if language != "sh"]
    return [found[0] for block in others for found in _LOOKS_LIKE_ONE.finditer(block)]


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _commands(text: str) -> tuple[Command, ...]:
    commands = []
    for line in text.replace("\\\n", " ").splitlines():
        for part in re.split(r" && ", line):
            words = shlex.split(part, comments=True)
            variables = []
            while words and (found := _VARIABLE.fullmatch(words[0])):
                variables.append((found[1], found[2]))
                words.pop(0)
            if words and words[-1] == "&":
                words.pop()
            if words:
                commands.append(Command(tuple(variables), tuple(words)))
    return tuple(commands)

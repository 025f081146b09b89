"""Small pieces of GitHub flavoured Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

# Code within a line, as CommonMark pairs backticks. A pipe would end a table's cell even in there.
_CODE = re.compile(r"(?<!`)(`+)(?!`)([^|]*?[^`|])\1(?!`)")
# What would begin a column, emphasis, a link, a picture or code; an underscore within a word does not.
_MARKS = re.compile(r"[\\|*`~\[]|(?<![^\W_])_|_(?![^\W_])")
# What would begin a heading, a quotation, a list or a line across at the begin of a line.
_BEGINS = re.compile(r"^(\d{1,9})?(?=[.)](?:\s|$)|#{1,6}(?:\s|$)|[-+](?:\s|$)|>|[-=]{2,})")


def table(head: Sequence[str], lines: Sequence[str]) -> str:
    """Return a table of lines already joined by ``|``; empty without lines."""
    if not lines:
        return ""
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *lines]) + "\n"


def text(value: Any) -> str:
    """Return text on one line that is text wherever it stands: in a table, a list, a heading.

    Nothing in it is a mark but code between backticks, which our own sentences use.
    """
    plain = " ".join(str(value).split())
    parts, end = [], 0
    for found in _CODE.finditer(plain):
        parts += [_escaped(plain[end : found.start()]), found[0]]
        end = found.end()
    return _BEGINS.sub(r"\1\\", "".join([*parts, _escaped(plain[end:])]))


def _escaped(plain: str) -> str:
    return _MARKS.sub(r"\\\g<0>", plain.replace("&", "&amp;").replace("<", "&lt;"))


def code(value: Any) -> str:
    """Return a value as code within a line, whatever it holds; not for tables, whose cells a pipe ends."""
    plain = " ".join(str(value).split())
    fence = _fence(plain, 1)
    return f"{fence} {plain} {fence}" if "`" in plain else f"`{plain}`"


def block(language: str, value: str) -> str:
    """Return lines of code that nothing in them can end."""
    fence = _fence(value, 3)
    return f"{fence}{language}\n{value}\n{fence}\n"


def folded(title: str, body: str) -> str:
    """Return a part that opens with a click; empty without a body."""
    return f"<details>\n<summary><b>{title}</b></summary>\n\n{body}\n</details>\n" if body else ""


def _fence(value: str, least: int) -> str:
    longest = max((len(run) for run in re.findall("`+", value)), default=0)
    return "`" * (longest + 1 if longest >= least else least)


def figure(value: float | None) -> str:
    """Return a number with two decimals, or nothing."""
    return "" if value is None else f"{value:.2f}"


def latency(seconds: float | None) -> str:
    """Return a latency in milliseconds below a second, or nothing."""
    if seconds is None:
        return ""
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"

"""Small pieces of GitHub flavoured Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

# What would begin a column, a link or a picture. Emphasis and code stay: our own sentences use them.
_MARKS = re.compile(r"\||\[(?=[^\]]*\]\()")


def table(head: Sequence[str], lines: Sequence[str]) -> str:
    """Return a table of lines already joined by ``|``; empty without lines."""
    if not lines:
        return ""
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *lines]) + "\n"


def text(value: Any) -> str:
    """Return text that Markdown tables, links, pictures and inline HTML leave alone, on one line."""
    plain = " ".join(str(value).split())
    return _MARKS.sub(r"\\\g<0>", plain.replace("&", "&amp;").replace("<", "&lt;"))


def code(value: Any) -> str:
    """Return a value as code within a line, whatever it holds."""
    plain = " ".join(str(value).split())
    fence = _fence(plain, 1)
    return f"{fence} {plain} {fence}" if "`" in plain else f"`{plain}`"


def block(language: str, value: str) -> str:
    """Return lines of code that nothing in them can end."""
    fence = _fence(value, 3)
    return f"{fence}{language}\n{value}\n{fence}\n"


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

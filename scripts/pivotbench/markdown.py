"""Small pieces of GitHub flavoured Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def table(head: Sequence[str], lines: Sequence[str]) -> str:
    """Return a table of lines already joined by ``|``; empty without lines."""
    if not lines:
        return ""
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *lines]) + "\n"


def text(value: Any) -> str:
    """Return text that Markdown tables and inline HTML leave alone."""
    return str(value).replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def figure(value: float | None) -> str:
    """Return a number with two decimals, or nothing."""
    return "" if value is None else f"{value:.2f}"


def latency(seconds: float | None) -> str:
    """Return a latency in milliseconds below a second, or nothing."""
    if seconds is None:
        return ""
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"

"""Whom a chart with marks of every configuration still shows where there are hundreds of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pivotbench.charts.field import plain_name
from pivotbench.charts.hues import Hues

# Beyond these, marks lie on each other and nobody can be found among them; tables have them all.
MOST_DRAWN = 60


def drawn(
    decision: Mapping[str, Any], hues: Hues, names: Iterable[str], also: Iterable[str]
) -> frozenset[str]:
    """Return which of the plain ``names`` are drawn: all, or of a crowd those that matter.

    Those are whoever has a colour of its own, ``also``, and of the others the fastest.
    """
    present = frozenset(names)
    if len(present) <= MOST_DRAWN:
        return present
    first = present.intersection([*hues.named, *also])
    ranking = sorted(decision["ranking"], key=lambda row: -row["mean_tok_s"])
    rest = dict.fromkeys(plain_name(row["configuration"]) for row in ranking)
    fastest = [name for name in rest if name in present - first]
    return first.union(fastest[: max(0, MOST_DRAWN - len(first))])


def note(shown: Collection[str], names: Collection[str], also: str) -> str:
    """Return what a caption says where not all are drawn, and else nothing; ``also``: the words for those."""
    if len(shown) == len(names):
        return ""
    quantity = f"{len(shown)} of {len(names)} configurations"
    return f" Drawn are {quantity}: those with a colour, {also} and the fastest."

"""The order in which the configurations of a round are launched."""

from __future__ import annotations

from collections.abc import Iterable

from pivotbench.files import fingerprint

TURNS = 1000


def turn(study: str, phase: str, round_: int, name: str) -> int:
    """Return a configuration's turn in a round, 0 to TURNS - 1; the lower runs earlier.

    Random between rounds, so that no configuration always runs first on a cool machine, and the same at
    every invocation; a name that joins or leaves does not reorder the others.
    """
    return int(fingerprint([study, phase, round_, name]), 16) % TURNS


def round_order(study: str, phase: str, round_: int, names: Iterable[str]) -> list[str]:
    """Return ``names`` in the order in which this round runs them."""
    return sorted(names, key=lambda name: (turn(study, phase, round_, name), name))

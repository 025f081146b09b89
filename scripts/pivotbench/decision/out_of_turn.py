"""Whose rounds were not measured side by side, so that what changed on the machine meanwhile is in a ratio.

A race plans a round once the one before is whole: every load of round n begins before any of round n + 1, on
however many servers at once. Of cells that were made anew or added afterwards that is not so. Only the order
of the rounds counts, not how long passed between them; of a single round nothing can be told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

Begun = Mapping[int, datetime]  # by round, when the load of a measured cell began


def late(own: Begun, other: Begun) -> tuple[int, int] | None:
    """Return a round of one configuration, and the later one of the other that began before it.

    Of several the two that are farthest apart; None where it is in turn against the other, which says
    nothing of the other.
    """
    found = max(((own[n] - other[m], n, m) for n, m in _late(own, other)), default=None)
    return found and found[1:]


def side_by_side(a: Begun, b: Begun) -> int:
    """Return how many rounds of two configurations were measured in turn, against all rounds of the other."""
    apart = {n for pair in (*_late(a, b), *_late(b, a)) for n in pair}
    return len((a.keys() & b.keys()) - apart)


def late_pairs(begun: Mapping[str, Begun]) -> list[tuple[str, str]]:
    """Return who is late against whom, in the order of ``begun``."""
    # When any round after n first began: who was before that is in turn against all, as nearly everyone is.
    last = max((n for rounds in begun.values() for n in rounds), default=0)
    first = {
        n: min(at for rounds in begun.values() for m, at in rounds.items() if m > n) for n in range(1, last)
    }
    suspects = [
        name for name, rounds in begun.items() if any(n < last and at > first[n] for n, at in rounds.items())
    ]
    return [(a, b) for a in suspects for b in begun if a != b and late(begun[a], begun[b])]


def _late(own: Begun, other: Begun) -> Iterator[tuple[int, int]]:
    """Each round and later round between which only ``own`` is out of turn.

    Where the other's same round began after the later one of ``own`` too, both were made anew, side by side.
    """
    for n, begun in own.items():
        for m, at in other.items():
            if n < m and begun > at and not (n in other and m in own and other[n] > own[m]):
                yield n, m

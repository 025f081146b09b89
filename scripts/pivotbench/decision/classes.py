"""Equivalence classes that never contradict each other, although equivalence is not transitive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pivotbench.decision.contest import Contest


def classes(contest: Contest) -> Iterator[dict[str, Any]]:
    """Yield the classes of ranked configurations, that of the fastest first.

    The leader rule: the fastest configuration not yet in a class leads a new one and takes in everyone
    shown to be equivalent to *it*; equivalence between two members through a third is never concluded.
    So each configuration is in exactly one class. ``against_best`` is the verdict of a class's leader on
    the fastest of all: where it is undecided, the border between the two classes is not a finding.
    """
    left = list(contest.ranked)
    while left:
        leader, *others = left
        members = [leader, *(n for n in others if contest.equivalent(n, leader))]
        best = contest.ranked[0]
        yield {
            "phase": contest.phase,
            "leader": leader,
            "members": members,
            "against_best": "best" if leader == best else contest.verdict(leader, best),
        }
        left = [n for n in others if n not in members]

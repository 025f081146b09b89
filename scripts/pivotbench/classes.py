"""Equivalence classes that never contradict each other, although equivalence is not transitive."""

from __future__ import annotations

from typing import Any

from pivotbench.contest import Contest


def classes(contest: Contest) -> list[dict[str, Any]]:
    """Return the classes of ranked configurations, that of the fastest first.

    The leader rule: the fastest configuration not yet in a class leads a new one and takes in everyone
    shown to be equivalent to *it*; equivalence between two members through a third is never concluded.
    So each configuration is in exactly one class. ``undecided`` names those further down that are not
    shown to differ from the leader: the border to them is not a finding.
    """
    left = list(contest.ranked)
    found = []
    while left:
        leader, *others = left
        verdicts = {name: contest.compare(name, leader).verdict for name in others}
        members = [leader, *(n for n in others if verdicts[n] == "equivalent")]
        found.append(
            {
                "phase": contest.phase,
                "leader": leader,
                "members": members,
                "undecided": [n for n in others if verdicts[n] == "undecided"],
            }
        )
        left = [n for n in others if n not in members]
    return found

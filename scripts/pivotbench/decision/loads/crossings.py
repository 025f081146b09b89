"""Where the lines of two configurations cross.

They do only where one is shown to be faster at one load and slower at another. Else a change of the best is
undecided.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import Any

from pivotbench.agreement import baseline
from pivotbench.decision.loads.levels import Load


def crossings(loads: Sequence[Load]) -> Iterator[dict[str, Any]]:
    """Yield where the lines of two configurations cross, along concurrency and between workloads."""
    by_workload: dict[str | None, list[Load]] = {}
    for load in loads:
        if load.place[1] is not None:
            by_workload.setdefault(load.place[0], []).append(load)
    for each in by_workload.values():
        yield from _along_concurrency(each)
    for one, other in combinations([load for load in loads if load.place[0] is not None], 2):
        if one.place[1] is not None and one.place[1] == other.place[1] and _crosses(one, other):
            yield _crossing("workload", one, other, one.best, other.best, "crossing")


def _along_concurrency(loads: Sequence[Load]) -> Iterator[dict[str, Any]]:
    """``loads``: of one workload, rising. Between two at which a pair is decided it may be undecided."""
    rivals = sorted({load.best for load in loads} | {n for load in loads if (n := baseline(load.names))})
    shown: list[tuple[set[str], Sequence[Load]]] = []
    for pair in combinations(rivals, 2):
        both = [load for load in loads if set(pair) <= set(load.names)]
        decided = [(load, v) for load in both if (v := load.verdict(*pair)) in ("faster", "slower")]
        for (one, before), (other, after) in pairwise(decided):
            if before != after:
                ahead, behind = pair if before == "faster" else pair[::-1]
                shown.append((set(pair), loads[loads.index(one) : loads.index(other) + 1]))
                yield _crossing("concurrency", one, other, ahead, behind, "crossing")
    for one, other in pairwise(loads):
        pair_ = {one.best, other.best}
        if len(pair_) == 2 and not any(p == pair_ and one in s and other in s for p, s in shown):
            yield _crossing("concurrency", one, other, one.best, other.best, "undecided")


def _crosses(one: Load, other: Load) -> bool:
    a, b = one.best, other.best
    if a == b or not {a, b} <= set(one.names) & set(other.names):
        return False
    return one.verdict(a, b) == "faster" and other.verdict(b, a) == "faster"


def _crossing(along: str, one: Load, other: Load, a: str, b: str, verdict: str) -> dict[str, Any]:
    return {
        "phase": one.phase,
        "along": along,
        "a": a,
        "b": b,
        "a_ahead_at": one.place_json,
        "b_ahead_at": other.place_json,
        "verdict": verdict,
    }

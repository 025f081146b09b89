"""Verdicts across two folders: on the metric, and by workload and concurrency.

Pairs are fixed beforehand (a configuration with itself), so each pays an even share of the risk, as against
a baseline: spending.Risk. The metric is one family, with the winners as a pair more where their names differ;
the verdicts by load are another. A comparison is one look: comparing again after more rounds is another
chance of being misled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pivotbench.changes.folder import Key, Results
from pivotbench.changes.series import Series, apart, series
from pivotbench.changes.work import other_work
from pivotbench.decision.comparison import Comparison, settle
from pivotbench.decision.conditions import Conditions, conditions
from pivotbench.decision.metric import unrankable, window_mean
from pivotbench.decision.spending import Risk
from pivotbench.decision.statistics import geometric_mean, rounds_needed

Values = dict[Key, dict[int, float]]
ONE_LOOK = 2  # rounds: fewer decide nothing, and whatever there are, they are looked at once


@dataclass(frozen=True)
class Pair:
    """A configuration of the new folder against one of the old."""

    new: Key
    old: Key


def metric_verdicts(old: Results, new: Results) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Return the verdict on each configuration ranked in both folders, and the new winner against the old.

    The latter is None where either folder has no winner with a value.
    """
    values = [_metric(each) for each in (old, new)]
    same = [Pair(key, key) for key in sorted(values[0].keys() & values[1].keys())]
    winners = _winners(old, new, values)
    pairs = [*same, *([winners] if winners and winners not in same else [])]
    workloads = list(new.decision["metric"]["workloads"])
    risk = _risk(new, len(pairs))
    launches = [_series(each) for each in values]
    judged = {pair: _row(old, new, pair, launches, workloads, risk) for pair in pairs}
    for pair, row in judged.items():
        if why := _bounded(old, new, pair, row["verdict"]):
            row |= {"verdict": "undecided", "rounds_needed": None, "reason": why}
    return [judged[pair] for pair in same], judged[winners] if winners else None


def load_verdicts(old: Results, new: Results) -> list[dict[str, Any]]:
    """Return the verdict on each configuration at each load (workload, concurrency) that both measured."""
    tables = [_by_load(each) for each in (old, new)]
    places = {
        load: sorted(tables[0][load].keys() & tables[1][load].keys())
        for load in sorted(tables[0].keys() & tables[1].keys())
    }
    risk = _risk(new, sum(map(len, places.values())))
    found = []
    for load, keys in places.items():
        launches = [_series(table[load]) for table in tables]
        for key in keys:
            row = _row(old, new, Pair(key, key), launches, [load[0]], risk)
            found.append({**row, "workload": load[0], "concurrency": load[1]})
    return found


def _risk(new: Results, comparisons: int) -> Risk:
    confidence = new.decision["metric"]["confidence"]
    return Risk.against_baseline(confidence, comparisons, ONE_LOOK, ONE_LOOK)


def _metric(results: Results) -> Values:
    return {
        key: {entry["round"]: entry["tok_s"] for entry in row["by_round"]}
        for key, row in results.ranked.items()
        if results.works(key)
    }


def _winners(old: Results, new: Results, values: Sequence[Values]) -> Pair | None:
    was, now = old.winner, new.winner
    if was is None or now is None or was not in values[0] or now not in values[1]:
        return None
    return Pair(now, was)


def _by_load(results: Results) -> dict[tuple[str, int], Values]:
    runs: dict[tuple[str, int], dict[Key, dict[int, list[Mapping[str, Any]]]]] = {}
    for row in results.rows:
        key = (row["phase"], row["configuration"])
        # At a rate the arrivals set the speed, not the server.
        if row["concurrency"] is not None and results.works(key):
            by_round = runs.setdefault((row["workload"], row["concurrency"]), {}).setdefault(key, {})
            by_round.setdefault(row["round"], []).append(row)
    return {
        load: {key: means for key, rounds in by_key.items() if (means := _means(rounds))}
        for load, by_key in runs.items()
    }


def _means(rounds: Mapping[int, Sequence[Mapping[str, Any]]]) -> dict[int, float]:
    means = {r: window_mean(windows) for r, windows in rounds.items() if unrankable(windows) is None}
    return {r: value for r, value in means.items() if value > 0}


def _series(values: Values) -> dict[str, Series]:
    """The launches of each phase, which have a noise of their own."""
    return {
        phase: series({name: rounds for (other, name), rounds in values.items() if other == phase})
        for phase in {phase for phase, _ in values}
    }


def _row(
    old: Results,
    new: Results,
    pair: Pair,
    launches: Sequence[Mapping[str, Series]],
    workloads: Iterable[str],
    risk: Risk,
) -> dict[str, Any]:
    before, after = launches[0][pair.old[0]], launches[1][pair.new[0]]
    result = _judge(before, after, pair, risk, new.decision["metric"]["margin"])
    if why := other_work(old.own(pair.old), new.own(pair.new), workloads):
        reason = f"other work was sent: {why}"
        result = replace(result, verdict="not_comparable", rounds_needed=None, reason=reason)
    was, now = before.used[pair.old[1]], after.used[pair.new[1]]
    return {
        "phase": pair.new[0],
        "configuration": pair.new[1],
        "old_tok_s": geometric_mean(was.values()),
        "new_tok_s": geometric_mean(now.values()),
        "ratio": result.ratio,
        "ci": [result.ci.low, result.ci.high] if result.ci else None,
        "verdict": result.verdict,
        "old_rounds": len(was),
        "new_rounds": len(now),
        "rounds_needed": result.rounds_needed,
        "confounders": list(_hardware(old, pair.old).unlike(_hardware(new, pair.new))),
        "reason": result.reason,
    }


def _judge(before: Series, after: Series, pair: Pair, risk: Risk, margin: float) -> Comparison:
    names = (f"new {pair.new[1]}", f"old {pair.old[1]}")
    found, noise = apart(after, pair.new[1], before, pair.old[1])
    sides = ((names[0], pair.new[1], after), (names[1], pair.old[1], before))
    result = settle(
        names,
        found,
        noise,
        risk,
        margin,
        unsteady=[called for called, name, each in sides if name in each.unsteady],
        set_aside=any(name == odd for _, name, each in sides for odd, _ in each.odd),
    )
    if result.verdict != "undecided" or noise is None:
        return result
    return replace(result, rounds_needed=rounds_needed(found, noise, risk, margin, to_best=False))


def _bounded(old: Results, new: Results, pair: Pair, verdict: str) -> str | None:
    """Why a verdict is no finding since goodput of the pair is known by a bound only, or None."""
    rows = {"old": old.ranked[pair.old], "new": new.ranked[pair.new]}
    # Which bound of which side keeps the true ratio from being what the verdict says.
    against: dict[str, dict[str, tuple[str, ...]]] = {
        "faster": {"old": ("at_least",), "new": ("at_most",)},
        "slower": {"old": ("at_most",), "new": ("at_least",)},
        "equivalent": dict.fromkeys(rows, ("at_least", "at_most", "between")),
    }
    sides = against.get(verdict, {})
    bounded = [side for side, bounds in sides.items() if any(rows[side][bound] for bound in bounds)]
    if not bounded:
        return None
    return f"goodput of the {' and the '.join(bounded)} folder is known by a bound only, as its decision says"


def _hardware(results: Results, key: Key) -> Conditions:
    own = [row for row in results.rows if (row["phase"], row["configuration"]) == key]
    return conditions(own).get(key[1], Conditions())

"""The loads of one phase: who was measured at each workload and concurrency, and how any two compare there.

These verdicts are a family of their own: in each phase the study's risk is divided evenly over the loads
(Bonferroni), and within a load as for the metric (spending.Risk). The load that is the metric itself is not
judged again: its verdicts are those that decide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pivotbench.agreement import baseline
from pivotbench.decision import fairness
from pivotbench.decision.comparison import Comparison, Yardstick, judge
from pivotbench.decision.contest import Contest
from pivotbench.decision.metric import unrankable, weighted_mean, window_mean
from pivotbench.decision.spending import Risk
from pivotbench.decision.statistics import Interval, fit
from pivotbench.decision_rules import DecisionRules

Row = Mapping[str, Any]
Entry = Mapping[str, Any]
Place = tuple[str | None, int | None]  # workload, None for the mix; concurrency, None for goodput
Rounds = dict[str, dict[int, float]]  # configuration -> round -> tok/s


@dataclass(frozen=True)
class Load:
    """One load of one phase: who was measured there, highest mean first, and how any two compare.

    ``best``: what to serve of these, see ``_chosen``.
    """

    phase: str
    place: Place
    decides: bool
    names: tuple[str, ...]
    best: str
    mean: Callable[[str], float]
    compare: Callable[[str, str], Comparison]

    @property
    def place_json(self) -> dict[str, Any]:
        """The place as decision.json has it."""
        return {"workload": self.place[0], "concurrency": self.place[1]}

    def verdict(self, a: str, b: str) -> str:
        """How ``a`` stands to ``b``."""
        return self.compare(a, b).verdict


def loads(
    rules: DecisionRules,
    state: Contest,
    rows: Sequence[Row],
    base: str | None,
    speculation: Sequence[Entry],
) -> list[Load]:
    """Return the loads of ``state`` from ``rows``, the measurements of its phase; the mix comes last.

    ``base``: the backend that the first phase ended with; by the metric it stands for those equal to it.
    ``speculation``: the decision's entries; what they say of a pair at a load is not judged twice.
    """
    names = frozenset(state.eligible)
    measured = _measured(rules, [row for row in rows if row["configuration"] in names])
    whole = next(iter(rules.metric_weights)) if len(rules.metric_weights) == 1 else None
    metric: Place = (whole, rules.metric_concurrency)
    others = {place: rounds for place, rounds in measured.items() if place != metric}
    if state.phase == "speculative":
        mute = {row["workload"] for row in rows if row["kind"] == "synthetic" or row["speed_only"]}
    else:
        mute, speculation = set(), ()
    found = [
        _explored(
            rules,
            state,
            place,
            rounds,
            loads=len(others),
            sent=fairness.demand_of(rows, _workloads(rules, place), place[1]),
            mute=bool(mute & _workloads(rules, place)),
            known=_known(speculation, place),
        )
        for place, rounds in others.items()
    ]
    if ranked := tuple(name for name in state.ranked if name in names):
        best = base if base in ranked else _chosen(state.phase, ranked, state.verdict)
        found.append(Load(state.phase, metric, True, ranked, best, state.mean, state.compare))
    return sorted(found, key=lambda load: (load.place[0] is None, load.place[0] or "", load.place[1] or 0))


def _chosen(phase: str, names: Sequence[str], verdict: Callable[[str, str], str]) -> str:
    """The highest mean; with speculation of those shown to beat the baseline, and else the baseline."""
    reference = baseline(names) if phase == "speculative" else None
    if reference is None:
        return names[0]
    faster = (name for name in names if name != reference and verdict(name, reference) == "faster")
    return next(faster, reference)


def _measured(rules: DecisionRules, rows: Iterable[Row]) -> dict[Place, Rounds]:
    """Output tok/s by place, configuration and round, of runs whose speed counts."""
    windows: dict[tuple[str, int, str, int], list[Row]] = {}
    for row in rows:
        if row["concurrency"] is not None and unrankable([row]) is None:
            key = (row["workload"], row["concurrency"], row["configuration"], row["round"])
            windows.setdefault(key, []).append(row)
    places: dict[Place, Rounds] = {}
    for (workload, concurrency, name, round_), each in windows.items():
        if (speed := window_mean(each)) > 0:
            places.setdefault((workload, concurrency), {}).setdefault(name, {})[round_] = speed
    weights = rules.metric_weights
    if len(weights) > 1:
        for concurrency in sorted({c for _, c in places if c is not None}):
            mixed = [places.get((workload, concurrency), {}) for workload in weights]
            for name in sorted(set.intersection(*map(set, mixed))):
                for round_ in sorted(set.intersection(*(set(rounds[name]) for rounds in mixed))):
                    speeds = {w: each[name][round_] for w, each in zip(weights, mixed, strict=True)}
                    mix = places.setdefault((None, concurrency), {}).setdefault(name, {})
                    mix[round_] = weighted_mean(speeds, weights)
    return places


def _workloads(rules: DecisionRules, place: Place) -> set[str]:
    return set(rules.metric_weights) if place[0] is None else {place[0]}


def _known(speculation: Sequence[Entry], place: Place) -> dict[tuple[str, str], Comparison]:
    """What is said of speculation at a load, as comparisons of each configuration with the baseline."""
    words = {"pays": "faster", "costs": "slower", "equal": "equivalent"}
    found = {}
    for entry in speculation:
        if (entry["workload"], entry["concurrency"]) == place:
            pair = (entry["configuration"], entry["baseline"])
            verdict: Any = words.get(entry["verdict"], "undecided")
            ci = Interval(*entry["ci"]) if entry["ci"] else None
            found[pair] = Comparison(*pair, verdict, entry["speedup"], ci)
    return found


def _explored(
    rules: DecisionRules,
    state: Contest,
    place: Place,
    rounds: Rounds,
    loads: int,
    sent: fairness.Demand,
    mute: bool,
    known: Mapping[tuple[str, str], Comparison],
) -> Load:
    """``sent``: what the servers had to carry; ``mute``: nothing here can judge speculation; ``known``: what
    is told of pairs already.
    """
    fitted = fit(rounds)
    # To nine digits: the order must not hang on how a sum was rounded.
    names = tuple(sorted(fitted.used, key=lambda name: (-round(math.log(fitted.mean(name)), 9), name)))
    confidence = 1 - (1 - rules.confidence) / loads
    risk = Risk.among(confidence, len(names), rules.rounds_min, rules.rounds_max)
    by = Yardstick(fitted, risk, rules.margin, names[0])
    subjects = {name: replace(state.subjects[name], rounds=rounds[name], unranked={}) for name in names}

    def compared(a: str, b: str) -> Comparison:
        if (a, b) in known:
            return known[a, b]
        if (b, a) in known:
            return _turned(known[b, a])
        one, other = subjects[a], subjects[b]
        result = judge(one, other, by)
        if fairness.unfair(one.serving, other.serving, sent, state.spelling):
            return replace(result, verdict="not_comparable")
        return replace(result, verdict="undecided") if mute or state.simulated & {a, b} else result

    best = _chosen(state.phase, names, lambda a, b: compared(a, b).verdict)
    return Load(state.phase, place, False, names, best, fitted.mean, compared)


def _turned(told: Comparison) -> Comparison:
    turn: dict[str, Any] = {"faster": "slower", "slower": "faster"}
    ci = Interval(1 / told.ci.high, 1 / told.ci.low) if told.ci else None
    ratio = 1 / told.ratio if told.ratio else None
    return Comparison(told.b, told.a, turn.get(told.verdict, told.verdict), ratio, ci)

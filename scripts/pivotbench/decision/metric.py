"""The one scalar that decides: a configuration's value in each round, or why a round gives none."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pivotbench.decision_rules import DecisionRules

# Reasons for not ranking a round that another round would give again.
LASTING = ("client_bound", "unanswered")


@dataclass
class MetricValues:
    """The metric by round (tok/s), and the rounds that give none with the reason.

    For goodput also ``at_least``: the rounds whose value is only a lower bound; ``between``: those whose
    distance to another is not to be trusted; ``at_most``: those in which not even the least load met the
    limits; ``loads``: by round the largest load within the limits, of each
    workload.
    """

    rounds: dict[int, float] = field(default_factory=dict)
    unranked: dict[int, str] = field(default_factory=dict)
    at_least: set[int] = field(default_factory=set)
    at_most: set[int] = field(default_factory=set)
    between: set[int] = field(default_factory=set)
    loads: dict[int, dict[str, float]] = field(default_factory=dict)
    synthetic: bool = False
    simulated: bool = False


def metric_values(rules: DecisionRules, rows: Iterable[Mapping[str, Any]]) -> dict[str, MetricValues]:
    """Return for each configuration in ``rows`` (measurements of one phase) its metric by round.

    A round's value is the weighted geometric mean over the metric's workloads of the mean window
    output tok/s at the metric's concurrency. A round with a run there that ``unrankable`` speaks of is not
    ranked.
    """
    runs: dict[tuple[str, int], dict[str, list[Mapping[str, Any]]]] = {}
    for row in rows:
        cell = runs.setdefault((row["configuration"], row["round"]), {})
        if row["workload"] in rules.metric_weights and row["concurrency"] == rules.metric_concurrency:
            cell.setdefault(row["workload"], []).append(row)
    values: dict[str, MetricValues] = {}
    for (configuration, round_), by_workload in sorted(runs.items()):
        value = values.setdefault(configuration, MetricValues())
        windows = [row for rows_ in by_workload.values() for row in rows_]
        value.synthetic |= any(row["kind"] == "synthetic" or row["speed_only"] for row in windows)
        value.simulated |= any(row["simulated"] for row in windows)
        missing = sorted(set(rules.metric_weights) - set(by_workload))
        if missing:
            value.unranked[round_] = f"no windows of {', '.join(missing)}"
        elif (why := unrankable(windows)) is not None:
            value.unranked[round_] = why
        else:
            means = {w: window_mean(r) for w, r in by_workload.items()}
            if min(means.values()) > 0:
                value.rounds[round_] = weighted_mean(means, rules.metric_weights)
            else:
                value.unranked[round_] = "no tokens in a run"
    return values


def unrankable(windows: Iterable[Mapping[str, Any]]) -> str | None:
    """Return why the speed of these windows counts for nothing, or None; one of ``LASTING``.

    It may be the load generator's speed (client_bound), or that of other work than was asked for, since
    part of it failed whenever it was sent (unanswered).
    """
    windows = list(windows)
    return next((why for why in LASTING if any(row[why] for row in windows)), None)


def window_mean(windows: Iterable[Mapping[str, Any]]) -> float:
    """Return the mean output tok/s over the windows of one run."""
    speeds = [float(row["output_tok_s"]) for row in windows]
    return math.fsum(speeds) / len(speeds)


def weighted_mean(means: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Return the weighted geometric mean of positive speeds, keyed by workload like their weights."""
    total = math.fsum(weights[w] for w in means)
    return math.exp(math.fsum(weights[w] * math.log(v) for w, v in means.items()) / total)

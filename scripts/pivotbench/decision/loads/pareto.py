"""The Pareto set of throughput against latency: the operating points that no other beats in both.

An operating point is a configuration at a concurrency on a workload. Throughput is the output tok/s of the
whole server, latency the median request's time per output token after the first (TPOT), whose inverse is what
one user sees: tok/s a user. Points are means over rounds, so that membership is no verdict.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from pivotbench.decision.contest import Contest
from pivotbench.decision.metric import unrankable
from pivotbench.decision_rules import DecisionRules

Row = Mapping[str, Any]


def pareto(rules: DecisionRules, states: Iterable[Contest], rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return the Pareto set of each workload, the lowest latency first.

    Of ``rows``, the measurements of the evidence, those count that belong to configurations that could be
    chosen. The base that was relaunched without speculation is one with that of the first phase.
    """
    eligible = {(state.phase, name) for state in states for name in state.eligible}
    points: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        usable = row["concurrency"] is not None and unrankable([row]) is None
        if usable and row["tpot_p50_seconds"] and (row["phase"], row["configuration"]) in eligible:
            name = row["configuration"].removesuffix("+none")
            points.setdefault((row["workload"], name, row["concurrency"]), []).append(row)
    found = []
    for workload in sorted({workload for workload, _, _ in points}):
        here = [_point(rules, *key, windows) for key, windows in sorted(points.items()) if key[0] == workload]
        found += unbeaten(here)
    return found


def unbeaten(points: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the points with a higher ``output_tok_s`` than all of lower or equal ``tpot_p50_seconds``."""
    front: list[dict[str, Any]] = []
    most = -math.inf
    for point in sorted(points, key=lambda p: (p["tpot_p50_seconds"], -p["output_tok_s"])):
        if point["output_tok_s"] > most:
            most = point["output_tok_s"]
            front.append(point)
    return front


def _point(
    rules: DecisionRules, workload: str, name: str, concurrency: int, windows: Sequence[Row]
) -> dict[str, Any]:
    tok_s = fmean([row["output_tok_s"] for row in windows])
    latency = fmean([row["tpot_p50_seconds"] for row in windows])
    return {
        "workload": workload,
        "configuration": name,
        "concurrency": concurrency,
        "output_tok_s": tok_s,
        "output_tok_s_per_gpu": tok_s / rules.gpus if rules.gpus else None,
        "tok_s_per_user": 1 / latency,
        "tpot_p50_seconds": latency,
        "ttft_p50_seconds": _mean(windows, "ttft_p50_seconds"),
        "ttft_p99_seconds": _mean(windows, "ttft_p99_seconds"),
    }


def _mean(windows: Sequence[Row], column: str) -> float | None:
    told = [row[column] for row in windows if row[column] is not None]
    return fmean(told) if told else None

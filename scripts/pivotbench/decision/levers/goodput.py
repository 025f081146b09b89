"""What to measure next where goodput is known only by a bound."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pivotbench.decision.contest import Contest
from pivotbench.decision.levers.lever import Lever, lever
from pivotbench.decision_rules import DecisionRules


def goodput_levers(rules: DecisionRules, states: Sequence[Contest]) -> list[Lever]:
    """Return the levers, none where the limits are crossed well between two loads of every configuration."""
    if rules.goodput is None:
        return []
    subjects = [state.subjects[name] for state in states for name in state.alive]
    high = sorted({s.configuration for s in subjects if s.at_least})
    near = sorted({s.configuration for s in subjects if s.between})
    low = sorted({s.configuration for s in subjects if s.at_most})
    over, levers = rules.goodput.over, []
    if high:
        top = {w: [max(loads), 2 * max(loads)] for w, loads in _largest(states, high).items()}
        levers.append(
            lever(
                f"raise the {over}",
                f"no measured load shows where {', '.join(high)} would miss the limits",
                _loads(rules, over, top),
                "the same order of goodput once the limits are crossed",
            )
        )
    if near:
        levers.append(
            lever(
                "measure rates nearer to the limits",
                f"{', '.join(near)} cross them somewhere below a rate that is not sustained",
                _loads(rules, over, _largest(states, near)),
                "limits still met at these rates, and missed only where arrivals pile up",
            )
        )
    if low:
        levers.append(
            lever(
                f"measure at a lower {over}, or allow more time",
                f"{', '.join(low)} missed the limits at the least load in some round",
                {"decision": {"metric": {"workloads": dict(rules.metric_weights), **rules.pace}}},
                "limits missed at a load of one request as well",
            )
        )
    return levers


def _largest(states: Sequence[Contest], names: Sequence[str]) -> dict[str, list[float]]:
    """The largest loads of these configurations by workload, rising."""
    found: dict[str, set[float]] = {}
    for state in states:
        for name in names:
            for workload, load in state.largest_loads.get(name, {}).items():
                found.setdefault(workload, set()).add(load)
    return {workload: sorted(found[workload]) for workload in sorted(found)}


def _loads(rules: DecisionRules, over: str, loads: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """A fragment that adds these loads to workloads: concurrencies are whole, rates have three digits."""
    workloads = {name: dict(written) for name, written in rules.workloads.items()}
    for name, each in loads.items():
        added = {float(f"{load:.3g}") if over == "rate" else math.ceil(load) for load in each}
        workload = workloads.setdefault(name, {})
        workload[over] = sorted({*workload.get(over, ()), *added})
    return {"throughput": {"workloads": workloads}}

"""Whether speculation pays, in one sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pivotbench.figures import names, times


def finding(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return on which workloads speculation pays, costs, makes no difference or stays open."""
    outcomes: dict[str, list[str]] = {}
    for workload in dict.fromkeys(row["workload"] for row in rows):
        here = [row for row in rows if row["workload"] == workload]
        verdicts = {row["verdict"] for row in here}
        outcome = next((v for v in ("pays", "undecided", "equal", "costs") if v in verdicts), "undecided")
        outcomes.setdefault(outcome, []).append(workload)
    parts = []
    for outcome, workloads in outcomes.items():
        here = [
            r for r in rows if r["workload"] in workloads and r["verdict"] == outcome and r.get("speedup")
        ]
        if outcome == "pays":
            parts.append(f"pays on {names(workloads)} (up to {times(best(here))})")
        elif outcome == "costs":
            parts.append(f"costs speed on {names(workloads)} (at best {times(best(here))})")
        elif outcome == "equal":
            parts.append(f"makes no difference on {names(workloads)}")
        else:
            parts.append(f"is undecided on {names(workloads)}")
    order = ("pays", "makes", "is", "costs")
    return "Speculation " + " and ".join(sorted(parts, key=lambda part: order.index(part.split()[0])))


def best(rows: Sequence[Mapping[str, Any]]) -> float:
    """Return the largest speed-up of verdicts that have one."""
    return max(float(row["speedup"]) for row in rows)

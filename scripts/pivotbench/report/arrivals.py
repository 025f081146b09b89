"""What a rate of arrivals did to each configuration, for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from pivotbench.decision.loads.arrivals import sustained
from pivotbench.figures import number, seconds


@dataclass(frozen=True)
class ArrivalsRow:
    """One configuration under one rate; ``lost`` is how many requests failed, "" for none."""

    configuration: str
    arrived: str
    completed: str
    lost: str
    ttft_p50: str
    ttft_p99: str
    e2e_p99: str
    in_flight_peak: str
    sustained: str


def arrivals_groups(decision: Mapping[str, Any]) -> list[tuple[str, str, list[ArrivalsRow]]]:
    """Return the rows by workload and rate of arrivals asked for, in requests a second."""
    loads = groupby(decision["open_loop"], key=lambda row: (row["workload"], row["rate_per_second"]))
    return [(workload, f"{rate:g}", [_row(row) for row in rows]) for (workload, rate), rows in loads]


def _row(row: Mapping[str, Any]) -> ArrivalsRow:
    peak = row["in_flight_peak"]
    return ArrivalsRow(
        configuration=row["configuration"],
        arrived=_rate(row["arrived_per_second"]),
        completed=_rate(row["completed_per_second"]),
        lost=f"{row['requests_lost']:,} lost" if row["requests_lost"] else "",
        ttft_p50=_latency(row["ttft_p50_seconds"]),
        ttft_p99=_latency(row["ttft_p99_seconds"]),
        e2e_p99=_latency(row["e2e_p99_seconds"]),
        in_flight_peak="–" if peak is None else f"{peak:,}",
        sustained=sustained(row),
    )


def _rate(per_second: float | None) -> str:
    return "–" if per_second is None else number(per_second)


def _latency(value: float | None) -> str:
    return "–" if value is None else seconds(value)

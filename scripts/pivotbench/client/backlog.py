"""What an open loop shows beyond latencies: arrivals against completions, and requests in flight.

A request is in flight from its intended time to its end. Under a rate that a server sustains, their number
varies about a mean; with Poisson arrivals that do not hinder each other it is Poisson distributed (the
M/G/infinity queue), so two samples b and e of it differ with a standard deviation of about sqrt(b + e). The
backlog grows, and the rate is unsustainable, where the number in flight at the end of the measured time
exceeds that at its begin by more than GROWTH_SDS of these and by more than GROWTH_SHARE of all arrivals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pivotbench.client.percentiles import percentile
from pivotbench.client.plan import Measured
from pivotbench.client.record import RequestRecord

GROWTH_SDS = 2.0
GROWTH_SHARE = 0.05


@dataclass(frozen=True)
class InFlight:
    """Requests in flight over the measured time."""

    begin: int
    end: int
    peak: int
    mean: float


def in_flight(records: Sequence[RequestRecord], begin: float, end: float) -> InFlight:
    """Return how many requests were in flight from ``begin`` to ``end``; one that was cut never ended.

    What arrives at ``end`` itself is not counted: the measured time may end at an arrival.
    """
    changes = sorted(
        change
        for r in records
        if r.intended_seconds is not None and r.intended_seconds < end
        for change in ((r.intended_seconds, 1), (math.inf if r.status == "cut" else r.end_seconds, -1))
    )
    now = sum(step for at, step in changes if at <= begin)
    at_begin = peak = now
    last, area = begin, 0.0
    for at, step in changes:
        if begin < at <= end:
            area += now * (at - last)
            now, last = now + step, at
            peak = max(peak, now)
    area += now * (end - last)
    return InFlight(at_begin, now, peak, area / (end - begin))


def open_loop_figures(records: Sequence[RequestRecord], measured: Measured) -> dict[str, Any] | None:
    """Return the rates (requests a second), requests in flight and ``unsustainable``; None in a closed loop.

    ``sent_late_p99_seconds`` is how late the client itself sent; latencies hold it too. A run that ended at
    the limit of requests in flight is unsustainable, whatever could be measured of it.
    """
    begin, end = measured.begin_seconds, measured.end_seconds
    counted = [r for r in records if r.measured and r.intended_seconds is not None]
    flooded = measured.in_flight_limit is not None
    if begin is None or end is None or end <= begin or not counted:
        unknown = dict.fromkeys(
            ("arrivals_per_second", "completed_per_second", "in_flight", "sent_late_p99_seconds")
        )
        return {**unknown, "unsustainable": True} if flooded else None
    seconds = end - begin
    flying = in_flight(records, begin, end)
    growth = flying.end - flying.begin
    completed = sum(r.status == "ok" and begin < r.end_seconds <= end for r in records)
    late = [r.sent_seconds - r.intended_seconds for r in counted if r.intended_seconds is not None]
    return {
        "arrivals_per_second": len(counted) / seconds,
        "completed_per_second": completed / seconds,
        "in_flight": {**vars(flying)},
        "sent_late_p99_seconds": percentile(late, 99),
        "unsustainable": flooded
        or (
            growth > GROWTH_SDS * math.sqrt(flying.begin + flying.end)
            and growth > GROWTH_SHARE * len(counted)
        ),
    }

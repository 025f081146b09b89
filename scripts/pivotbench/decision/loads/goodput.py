"""Goodput: the output tok/s at the largest load that meets limits of latency at stated percentiles.

The largest request rate that holds latency objectives at a stated attainment: Zhong et al. (2024), DistServe,
https://arxiv.org/abs/2401.09670; the server scenario of MLPerf Inference is of the same kind, Reddi et al.
(2020), https://arxiv.org/abs/1911.02549. A request that is lost is a miss, since otherwise dropping the late
would raise goodput: Wang et al. (2024), https://arxiv.org/abs/2410.14257.

The load of a round is read off the loads it measured, from the least upwards. A load meets the limits where
every limited percentile, taken over all measured requests with lost ones as endless, is within its limit and
the arrivals did not pile up. The first load that does not ends the search: one that meets them again above it
did so by luck. Between the last that met them and the first that did not, each percentile is taken to follow
one line, and the limit crossed first gives the largest load and the throughput there:

  concurrency: straight in the logarithms of load, latency and throughput. By Little's law latency grows in
    proportion to the requests in flight once throughput no longer does (Little 1961,
    https://doi.org/10.1287/opre.9.3.383).
  rate: the inverse of latency and the throughput are straight in the rate, as a percentile of the time in a
    queue is (service rate minus arrival rate, inverted, for M/M/1). Beyond what a server sustains latency
    depends on how long one looks: there the order of two configurations holds, their distance does not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pivotbench.decision.loads.arrivals import is_sustained
from pivotbench.decision.metric import LASTING, MetricValues, unrankable, weighted_mean
from pivotbench.evidence import CellFiles
from pivotbench.latency_limits import LATENCIES, Goodput
from pivotbench.measurements import marks
from pivotbench.workloads import load_in_words

Run = Mapping[str, Any]
LOST = ("failed", "short", "timeout")
SHORTEST_SECONDS = 1e-9
UNTOLD = "results of an earlier version hold no percentiles over all requests; remove them to measure again"


@dataclass(frozen=True)
class Reading:
    """One round's goodput on one workload: ``tok_s`` at ``load``, or the reason why there is none.

    ``at_least``: no measured load shows where the limits are crossed, so goodput may be higher. ``between``:
    they are crossed below a rate that the server does not sustain, so the distance to another configuration
    is not to be trusted. ``missed``: not even the least load meets the limits.
    """

    tok_s: float | None = None
    load: float | None = None
    at_least: bool = False
    between: bool = False
    missed: bool = False
    reason: str | None = None


def goodput_values(
    goodput: Goodput, weights: Mapping[str, float], cells: Iterable[CellFiles]
) -> dict[str, MetricValues]:
    """Return for each configuration in ``cells`` (of one phase) its goodput by round.

    Over several workloads it is the weighted geometric mean; a round that misses the limits on one of them at
    the least load has none.
    """
    values: dict[str, MetricValues] = {}
    for cell in sorted(cells, key=lambda c: (c.configuration, c.round)):
        if not cell.measured or cell.throughput is None:
            continue
        value = values.setdefault(cell.configuration, MetricValues())
        of_metric = [run for run in cell.throughput["runs"] if run["workload"] in weights]
        runs = [run for run in of_metric if goodput.load(run) is not None]
        judged = not cell.throughput.get("speed_only", False)
        value.synthetic |= any(run["kind"] == "synthetic" or not judged for run in runs)
        value.simulated |= any((run.get("acceptance") or {}).get("simulated", False) for run in runs)
        readings = {
            workload: largest_load(goodput, [run for run in runs if run["workload"] == workload])
            for workload in sorted(weights)
        }
        _enter(value, cell.round, readings, weights)
    return values


def largest_load(goodput: Goodput, runs: Iterable[Run]) -> Reading:
    """Return what the runs of one workload in one round tell.

    A run that shows the load generator's limits instead of the server's, or that failed in part whenever that
    was sent, makes the round tell nothing if the search comes to it.
    """
    met: Run | None = None
    for run in sorted(runs, key=lambda run: goodput.load(run) or 0.0):
        if reason := unrankable([marks(run)]):
            return Reading(reason=reason)
        if not all(_is_told(run, latency, percentile) for latency, percentile, _ in goodput.limits):
            return Reading(reason=UNTOLD)
        if misses := _misses(goodput, run):
            if met is None:
                return Reading(missed=True, reason=f"{load_in_words(run)}, the least load, has {misses}")
            return _between(goodput, met, run)
        met = run
    if met is None:
        return Reading(reason="no runs")
    return Reading(_tok_s(met), goodput.load(met), at_least=True)


def _enter(
    value: MetricValues, round_: int, readings: Mapping[str, Reading], weights: Mapping[str, float]
) -> None:
    speeds = {w: reading.tok_s for w, reading in readings.items() if reading.tok_s}
    loads = {w: reading.load for w, reading in readings.items() if reading.load is not None}
    if any(reading.missed for reading in readings.values()):
        value.at_most.add(round_)
    if len(speeds) == len(readings):
        value.rounds[round_] = weighted_mean(speeds, weights)
        value.loads[round_] = loads
        if any(reading.at_least for reading in readings.values()):
            value.at_least.add(round_)
        if any(reading.between for reading in readings.values()):
            value.between.add(round_)
        return
    reasons = [r.reason or "no tokens in a run" for r in readings.values() if not r.tok_s]
    value.unranked[round_] = next((why for why in LASTING if why in reasons), "; ".join(reasons))


def _between(goodput: Goodput, met: Run, missed: Run) -> Reading:
    """Return the point between two neighbouring loads at which the first limit is crossed.

    Where a percentile is endless or only the arrivals piled up, nobody knows where: at least the lower load.
    """
    low, high = goodput.load(met) or 0.0, goodput.load(missed) or 0.0
    over = [limit for limit in goodput.limits if _excess(missed, *limit) > 1]
    if not over or any(math.isinf(_excess(missed, *limit)) for limit in over):
        return Reading(_tok_s(met), low, at_least=True)
    # A server that gets slower beyond its limits is not held worse the nearer it comes to them.
    speeds = _tok_s(met), max(_tok_s(met), _tok_s(missed))
    pairs = [(_excess(met, *limit), _excess(missed, *limit)) for limit in over]
    if goodput.over == "rate":
        share = min((1 / a - 1) / (1 / a - 1 / b) for a, b in pairs)
        load, tok_s = ((1 - share) * a + share * b for a, b in ((low, high), speeds))
    else:
        share = min(-math.log(a) / math.log(b / a) for a, b in pairs)
        load, tok_s = (_power(a, b, share) for a, b in ((low, high), speeds))
    return Reading(tok_s, load, between=not is_sustained(missed))


def _misses(goodput: Goodput, run: Run) -> str:
    """What keeps a run from meeting the limits, in words; empty where it meets them."""
    found = []
    for latency, percentile, limit in goodput.limits:
        if _excess(run, latency, percentile, limit) > 1:
            seconds = _seconds(run, latency, percentile)
            told = "of lost requests" if seconds is None else f"{seconds:.3g} s"
            found.append(f"{LATENCIES[latency]} {percentile} {told} (limit {limit:g} s)")
    if not is_sustained(run):
        found.append("arrivals that piled up")
    return ", ".join(found)


def _excess(run: Run, latency: str, percentile: str, limit: float) -> float:
    """A percentile over its limit; infinite where it is that of a lost request."""
    seconds = _seconds(run, latency, percentile)
    return math.inf if seconds is None else max(seconds, SHORTEST_SECONDS) / limit


def _is_told(run: Run, latency: str, percentile: str) -> bool:
    """Whether the run holds a percentile over all requests; without lost ones the usual one is."""
    nothing_lost = not sum(run["requests"].get(why, 0) for why in LOST)
    return "all_requests" in run or (nothing_lost and percentile in (run.get(latency) or {}))


def _seconds(run: Run, latency: str, percentile: str) -> float | None:
    """A percentile over all requests; None where it is that of a lost one."""
    seconds: float | None = run.get("all_requests", run)[latency][percentile]
    return seconds


def _tok_s(run: Run) -> float:
    windows: Sequence[Mapping[str, Any]] = run["windows"]
    return math.fsum(w["output_tok_s"] for w in windows) / len(windows) if windows else 0.0


def _power(low: float, high: float, share: float) -> float:
    return math.pow(low, 1 - share) * math.pow(high, share)

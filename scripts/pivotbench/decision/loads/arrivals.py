"""What runs at a rate of arrivals show of each configuration, pooled over its rounds.

By themselves rates decide nothing: there the arrivals set the speed. They tell how long people would wait,
and whether the server keeps up at all; the largest that meets a study's limits gives its ``goodput``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from pivotbench.evidence import CellFiles
from pivotbench.measurements import marks

Run = Mapping[str, Any]

CAPTION = (
    "Medians over the rounds, but the highest peak of them. Latencies run from the time a request was meant "
    "to be sent. A rate is sustained where the requests in flight did not pile up"
)


def under_arrivals(
    cells: Iterable[CellFiles], healthy: Sequence[tuple[str, str]]
) -> list[dict[str, float | str | None]]:
    """Return a row for each workload, rate and configuration, in that order.

    ``healthy``: the (phase, configuration) to be told of, in the order to list them. A run that may show the
    load generator's limits instead of the server's counts for nothing here, as in the ranking. Latencies in
    seconds, rates in requests/s; None where no run tells.
    """
    loads: dict[tuple[str, float, int], list[Run]] = {}
    for cell in cells:
        if cell.measured and (cell.phase, cell.configuration) in healthy:
            place = healthy.index((cell.phase, cell.configuration))
            for run in (cell.throughput or {})["runs"]:
                if run.get("rate_per_second") is not None and not marks(run)["client_bound"]:
                    loads.setdefault((run["workload"], run["rate_per_second"], place), []).append(run)
    return [
        {
            "phase": healthy[place][0],
            "configuration": healthy[place][1],
            "workload": workload,
            "rate_per_second": rate,
            **_pooled(runs),
        }
        for (workload, rate, place), runs in sorted(loads.items())
    ]


def sustained(row: Mapping[str, Any]) -> str:
    """Return whether the rate was sustained, in words: yes, no, or in how many of the rounds."""
    if row["rounds_sustained"] in (0, row["rounds"]):
        return "yes" if row["rounds_sustained"] else "no"
    return f"in {row['rounds_sustained']} of {row['rounds']} rounds"


def _pooled(runs: Sequence[Run]) -> dict[str, float | None]:
    return {
        "arrived_per_second": _over(median, runs, "open_loop", "arrivals_per_second"),
        "completed_per_second": _over(median, runs, "open_loop", "completed_per_second"),
        "requests_lost": sum(run["requests"][why] for run in runs for why in ("failed", "short", "timeout")),
        "ttft_p50_seconds": _over(median, runs, "ttft_seconds", "p50"),
        "ttft_p99_seconds": _over(median, runs, "ttft_seconds", "p99"),
        "e2e_p99_seconds": _over(median, runs, "e2e_seconds", "p99"),
        "in_flight_peak": _over(max, runs, "open_loop", "in_flight", "peak"),
        "rounds": len(runs),
        "rounds_sustained": sum(is_sustained(run) for run in runs),
    }


def is_sustained(run: Run) -> bool:
    """Return whether a run's requests in flight did not pile up; without a rate they cannot.

    Without figures the client gave up before the measured time: too many requests were in flight.
    """
    if run.get("rate_per_second") is None:
        return True
    figures = run.get("open_loop")
    return figures is not None and not figures["unsustainable"]


def _over(pool: Callable[[list[float]], float], runs: Sequence[Run], *path: str) -> float | None:
    told = [figure for run in runs if (figure := _figure(run, path)) is not None]
    return pool(told) if told else None


def _figure(run: Any, path: Sequence[str]) -> float | None:
    for key in path:
        run = None if run is None else run[key]
    figure: float | None = run
    return figure

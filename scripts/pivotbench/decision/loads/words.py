"""What decision.json says of loads, in words: what to serve, crossings, the largest load within limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]

PARETO_CAPTION = (
    "No configuration measured has both more throughput and less latency than one of these, by means over "
    "rounds; that is no verdict"
)


def place_words(place: Row) -> str:
    """Return a load: a workload, or the study's mix, at a concurrency, or for goodput at the largest load."""
    what = "the mix" if place["workload"] is None else place["workload"]
    if place["concurrency"] is None:
        return f"{what} at its largest load"
    return f"{what} at concurrency {place['concurrency']}"


def standing_words(row: Row) -> str:
    """Return how sure the best of a load is."""
    if row["standing"] == "undecided":
        return f"undecided, not told apart from {_few(row['undecided'])}"
    if row["standing"] == "equivalent":
        return f"equivalent to {_few(row['equivalent'])}"
    return {"leads": "faster than all others", "alone": "the only one measured"}[str(row["standing"])]


def crossing_words(row: Row) -> str:
    """Return one sentence on where two configurations change places."""
    a, b = (row[key].removesuffix("+none") for key in ("a", "b"))
    one, other = row["a_ahead_at"], row["b_ahead_at"]
    if row["along"] == "workload":
        where = f"At concurrency {one['concurrency']}"
        return f"{where} {a} is faster on {one['workload']}, {b} on {other['workload']}"
    on = f"On {'the mix' if one['workload'] is None else one['workload']}"
    low, high = sorted((one["concurrency"], other["concurrency"]))
    if row["verdict"] == "crossing":
        ahead = f"{a} is faster at concurrency {one['concurrency']}, {b} at {other['concurrency']}"
        return f"{on} {ahead}: they cross between {low} and {high}"
    chosen = f"{a} is chosen at concurrency {one['concurrency']}, {b} at {other['concurrency']}"
    return f"{on} {chosen}; that they change places is not shown"


def largest_load_words(row: Row, metric: Row) -> str:
    """Return the largest load within the limits by workload; empty where goodput does not decide."""
    if not row["largest_load"] or not metric["goodput"]:
        return ""
    unit = "requests/s" if metric["goodput"]["over"] == "rate" else "streams"
    loads = row["largest_load"]
    parts = [f"{load:.3g} {unit}{f' of {w}' if len(loads) > 1 else ''}" for w, load in sorted(loads.items())]
    return f"{'at least ' if row['at_least'] else ''}{', '.join(parts)}"


def _few(names: Sequence[str], most: int = 3) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more

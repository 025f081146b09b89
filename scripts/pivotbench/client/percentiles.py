"""Percentiles of plain lists, without numpy's import time."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pivotbench.latency_limits import PERCENTILES


def percentile(values: Sequence[float], percent: float) -> float | None:
    """Return a percentile by linear interpolation between order statistics; None for no values.

    Hyndman and Fan (1996), definition 7, which is numpy's default.
    """
    return _of_sorted(sorted(values), percent)


def spread(values: Sequence[float]) -> dict[str, float | None]:
    """Return mean, p50, p90 and p99, each None for no values."""
    ordered = sorted(values)
    return {
        "mean": sum(values) / len(values) if values else None,
        "p50": _of_sorted(ordered, 50),
        "p90": _of_sorted(ordered, 90),
        "p99": _of_sorted(ordered, 99),
    }


def with_lost(values: Sequence[float], lost: int) -> dict[str, float | None]:
    """Return p50, p90, p95 and p99 of ``values`` and as many endless ones as were lost; None: endless."""
    ordered = [*sorted(values), *[math.inf] * lost]
    found = {percent: _of_sorted(ordered, percent) for percent in PERCENTILES}
    return {f"p{p}": None if at is None or not math.isfinite(at) else at for p, at in found.items()}


def _of_sorted(ordered: Sequence[float], percent: float) -> float | None:
    if not ordered:
        return None
    position = (len(ordered) - 1) * percent / 100
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    if position == below:
        return ordered[below]
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)

"""Percentiles of plain lists, without numpy's import time."""

from __future__ import annotations

from collections.abc import Sequence


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


def _of_sorted(ordered: Sequence[float], percent: float) -> float | None:
    if not ordered:
        return None
    position = (len(ordered) - 1) * percent / 100
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)

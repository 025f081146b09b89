"""Goodput as a study declares it: over which loads, within which limits of latency."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

LATENCIES = {"ttft_seconds": "TTFT", "tpot_seconds": "TPOT", "e2e_seconds": "end to end"}
PERCENTILES = (50, 90, 95, 99)


@dataclass(frozen=True)
class Goodput:
    """``limits``: the latency (a key of LATENCIES), the percentile (p50, ...) and the longest time, seconds.

    ``over``: which loads are searched, closed loops by concurrency or open loops by rate.
    """

    over: Literal["concurrency", "rate"]
    limits: tuple[tuple[str, str, float], ...]

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Goodput:
        """Return the goodput of a study's or decision's ``metric.goodput``; null limits are none."""
        limits = (
            (latency, percentile, float(seconds))
            for latency in LATENCIES
            for percentile, seconds in (data.get(latency) or {}).items()
            if seconds is not None
        )
        return cls(data["over"], tuple(limits))

    def to_json(self) -> dict[str, Any]:
        """Return what from_json reads."""
        limits: dict[str, dict[str, float]] = {}
        for latency, percentile, seconds in self.limits:
            limits.setdefault(latency, {})[percentile] = seconds
        return {"over": self.over, **limits}

    @property
    def words(self) -> str:
        """The limits for people."""
        return ", ".join(f"{LATENCIES[name]} {p} {seconds:g} s" for name, p, seconds in self.limits)

    def load(self, run: Mapping[str, Any]) -> float | None:
        """Return the run's load if it is one of those searched."""
        load: float | None = run.get("concurrency" if self.over == "concurrency" else "rate_per_second")
        return load

"""When an open loop sends: seeded Poisson arrivals, and which of them are measured.

All of it follows from the rate, the seed and the times asked for, and nothing from how the server answers, so
every configuration gets the same arrivals and the same ones of them count. A lead-in, not measured, fills the
server first (pace.py says how long).
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from pivotbench.pace import lead_in_seconds


@dataclass(frozen=True)
class Schedule:
    """Arrivals from 0 on, in seconds; the ``requests`` intended in [begin, end) are measured."""

    rate_per_second: float
    seed: str
    begin_seconds: float
    end_seconds: float
    requests: int

    @classmethod
    def of(cls, rate_per_second: float, seed: str, seconds: float, min_requests: int) -> Schedule:
        """Return a schedule that measures for ``seconds``, or longer until ``min_requests`` have come."""
        begin = lead_in_seconds(seconds)
        regular_end = begin + seconds
        counted, last = 0, begin
        for at in arrivals(rate_per_second, seed):
            if at >= regular_end and counted >= min_requests:
                break
            if at >= begin:
                counted, last = counted + 1, at
        # Where it takes longer, it ends at the first arrival that does not count any more.
        end = at if last >= regular_end else regular_end
        return cls(rate_per_second, seed, begin, end, counted)

    def __iter__(self) -> Iterator[float]:
        """Yield the arrivals without end."""
        return arrivals(self.rate_per_second, self.seed)

    def counts(self, at_seconds: float) -> bool:
        """Return whether an arrival is measured."""
        return self.begin_seconds <= at_seconds < self.end_seconds


def arrivals(rate_per_second: float, seed: str) -> Iterator[float]:
    """Yield the times of a Poisson process in seconds: its gaps are exponential with mean 1 / rate."""
    dice = random.Random(f"{seed}/arrivals/{rate_per_second:g}")
    at = 0.0
    while True:
        at += dice.expovariate(rate_per_second)
        yield at

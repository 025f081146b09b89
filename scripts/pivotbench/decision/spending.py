"""How the risk of a false verdict is divided over pairs of configurations and over looks at the evidence.

Every round is another look, and every look another chance of being misled. A pair's whole risk ``alpha``
is therefore spent bit by bit: after n of N rounds, alpha * (n / N) ** 2 may have been spent. Lan and
DeMets (1983), https://doi.org/10.1093/biomet/70.3.659; the power family is that of Kim and DeMets (1987),
https://doi.org/10.1093/biomet/74.1.149. The exponent lies between 1, which spends much early and drops
losers soon, and 3, which is close to O'Brien and Fleming and keeps nearly all for the last round.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

EXPONENT = 2
DIFFERENCES = 0.1  # share of the risk that "faster" and "slower" get where there are several pairs
TAIL = 8.0  # standard deviations beyond which a normal density is left out
FINENESS = 4  # grid points in a standard deviation of one round's increment


@dataclass(frozen=True)
class Risk:
    """The error rates of single verdicts that together keep 1 - ``confidence`` for a whole family.

    ``pairs``: comparisons that may end as faster or slower. ``rivals``: comparisons that may end as
    equivalent to the best. A comparison is judged after ``first`` to ``last`` rounds. Between comparisons
    the risk is divided evenly, whatever the dependence between them (Bonferroni's inequality; Dunn 1961,
    https://doi.org/10.1080/01621459.1961.10482090).

    Among several configurations the best is chosen by the same data that judge it, so "faster" and "slower"
    pay for all pairs. "Equivalent to the best" pays only for the comparisons with one, the true best: if
    none of these is overestimated, whoever stays within the margin of the observed best is within the
    margin of the true one, and so is the observed best itself. Edwards and Hsu (1983),
    https://doi.org/10.1080/01621459.1983.10477047. That holds while all have run the same rounds; how often
    the rules err once a race has stopped some is measured by benchmarks/decision.

    One comparison alone cannot be wrong both ways, since a pair is truly equivalent or not: where nobody is
    chosen by the data, both have the whole of it.
    """

    confidence: float
    pairs: int
    rivals: int
    first: int
    last: int

    @classmethod
    def among(cls, confidence: float, configurations: int, first: int, last: int) -> Risk:
        """Return the risk of comparing so many configurations with each other, best and all."""
        pairs = max(1, configurations * (configurations - 1) // 2)
        return cls(confidence, pairs, max(1, configurations - 1), first, last)

    @classmethod
    def against_baseline(cls, confidence: float, comparisons: int, first: int, last: int) -> Risk:
        """Return the risk of so many comparisons with a baseline that was fixed beforehand."""
        return cls(confidence, max(1, comparisons), max(1, comparisons), first, last)

    def difference(self, rounds: int) -> float:
        """Return the one-sided error rate at which a pair may be called faster (or slower)."""
        share = 1.0 if self.pairs == self.rivals else DIFFERENCES
        return self._spent((1 - self.confidence) * share / (2 * self.pairs), rounds)

    def equivalence(self, rounds: int, *, to_best: bool) -> float:
        """Return the one-sided error rate of each of the two tests that make "equivalent"."""
        if self.pairs == self.rivals:
            return self._spent((1 - self.confidence) / self.pairs, rounds)
        if not to_best:
            return self.difference(rounds)
        return self._spent((1 - self.confidence) * (1 - DIFFERENCES) / self.rivals, rounds)

    def _spent(self, alpha: float, rounds: int) -> float:
        first, last = self.looks_at(self.first, self.last)
        return nominal_level(alpha, first, last, min(max(rounds, first), last))

    @staticmethod
    def looks_at(first: int, last: int) -> tuple[int, int]:
        """Return the first and last round that may be judged; a single one decides nothing."""
        first = max(2, first)
        return first, max(first, last)


def nominal_level(alpha: float, first: int, last: int, rounds: int) -> float:
    """Return the level of a one-sided test after ``rounds`` that is also made after each round before.

    All tests from ``first`` to ``rounds`` together err with the probability that may have been spent until
    then.
    """
    return _levels(alpha, first, last)[rounds - first]


@lru_cache(maxsize=4096)
def _levels(alpha: float, first: int, last: int) -> tuple[float, ...]:
    """Return the levels of the tests after each round from ``first`` to ``last``.

    The boundaries follow from the joint density of the normal partial sums by recursive integration:
    Armitage, McPherson and Rowe (1969), https://doi.org/10.2307/2343787. A level is turned into a boundary
    by Student's t where the variance is estimated: Pocock (1977), https://doi.org/10.1093/biomet/64.2.191.
    """
    import numpy as np
    from scipy.special import ndtr, ndtri

    time = first / last
    spent = alpha * time**EXPONENT
    levels = [spent]
    grid, mass = _grid(np, -float(ndtri(spent)) * math.sqrt(time), time, last)
    mass *= np.exp(-(grid**2) / (2 * time)) / math.sqrt(2 * math.pi * time)
    step = math.sqrt(1 / last)
    for number in range(first + 1, last + 1):
        time = number / last
        budget = alpha * time**EXPONENT - spent
        spent += budget
        bound = _bound(lambda at, g=grid, m=mass: float(m @ ndtr((g - at) / step)), budget, math.sqrt(time))
        levels.append(float(ndtr(-bound / math.sqrt(time))))
        points, weights = _grid(np, bound, time, last)
        density = np.exp(-((points[:, None] - grid) ** 2) / (2 / last)) / (step * math.sqrt(2 * math.pi))
        grid, mass = points, weights * (density @ mass)
    return tuple(levels)


def _grid(np: Any, bound: float, time: float, last: int) -> tuple[Any, Any]:
    """Points of a partial sum below ``bound``, and their weights in the trapezoidal rule."""
    low = -TAIL * math.sqrt(time)
    points = np.linspace(low, bound, math.ceil((bound - low) * FINENESS * math.sqrt(last)) + 1)
    weights = np.full(len(points), points[1] - points[0])
    weights[[0, -1]] /= 2
    return points, weights


def _bound(crossing: Any, budget: float, scale: float) -> float:
    """Return where the probability ``crossing`` of a partial sum beyond it falls to ``budget``."""
    low, high = 0.0, 2 * TAIL * scale
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if crossing(middle) > budget else (low, middle)
    return (low + high) / 2

"""Launches that do not belong to the rest: found before anything is estimated, set aside, and said.

A launch can be far off for a reason of its own (another job on the host, a link that came up slow). Left
in, it widens every interval of a phase; weighed down silently, it hides. So it is set aside by a rule, the
record names it, and its configuration needs another round.

The rule. Configurations and rounds are fitted by median polish, which a few odd launches do not move:
Tukey (1977), Exploratory Data Analysis, chapters 10 and 11. The scale is the median difference between two
launches of one configuration, over all such pairs, divided by that of the standard normal (0.954), after
Rousseeuw and Croux (1993), https://doi.org/10.2307/2291267. A launch is odd where it lies farther from its
configuration's median than the farthest of all would by chance in one phase of a hundred, by Student's t
with 0.37 of the residuals' degrees of freedom, the efficiency of a median deviation. With fewer than eight
degrees of freedom nothing is odd, and nothing is that lies within a hundredth.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from statistics import median

CHANCE = 0.01
PAIR_MEDIAN = 0.954
EFFICIENCY = 0.37
LEAST_DF = 8
LEAST = 0.01
SWEEPS = 6
MOST = 1 / 3

Values = Mapping[str, Mapping[int, float]]
Launch = tuple[str, int]


def odd_launches(values: Values) -> frozenset[Launch]:
    """Return the (configuration, round) to be set aside; ``values``: the metric by round, positive.

    Of a configuration with two rounds that contradict each other, nobody knows which one is odd: the slower
    is set aside, as a machine can be held up but not hurried, and one round decides nothing. One launch is
    always left.
    """
    logs = {n: {r: math.log(v) for r, v in rounds.items()} for n, rounds in values.items() if len(rounds) > 1}
    launches = sum(map(len, logs.values()))
    rounds = {r for y in logs.values() for r in y}
    df = launches - len(logs) - (len(rounds) - 1)
    if df < LEAST_DF:
        return frozenset()
    residuals = _polished(logs, sorted(rounds))
    gaps = [abs(x - y) for found in residuals.values() for x, y in combinations(found.values(), 2)]
    scale = median(gaps) / PAIR_MEDIAN * math.sqrt(len(logs) / (len(logs) - 1))
    limit = max(LEAST, scale * _limit(launches, df))
    odd: set[Launch] = set()
    for name, found in residuals.items():
        count = len(found)
        # Of two, the median is the mean; of more, the median spreads a little more than a mean would.
        spread = math.sqrt(1 / 2) if count == 2 else math.sqrt(1 + 1 / count)
        far = [r for r, e in found.items() if abs(e) > limit * spread]
        if far and count == 2:
            far = [min(found, key=lambda r: logs[name][r])]
        elif len(far) == count:
            far.remove(min(found, key=lambda r: abs(found[r])))
        odd.update((name, r) for r in far)
    return frozenset(odd)


def unsteady(values: Values, odd: frozenset[Launch]) -> frozenset[str]:
    """Return the configurations of which more than a third of at least three launches is odd."""
    counts = {name: sum(n == name for n, _ in odd) for name in values}
    return frozenset(n for n, rounds in values.items() if len(rounds) > 2 and counts[n] > MOST * len(rounds))


def _polished(logs: Values, rounds: Sequence[int]) -> dict[str, dict[int, float]]:
    centre = {name: median(y.values()) for name, y in logs.items()}
    effect: dict[int, float] = {}
    for _ in range(SWEEPS):
        effect = {r: median(y[r] - centre[n] for n, y in logs.items() if r in y) for r in rounds}
        centre = {n: median(v - effect[r] for r, v in y.items()) for n, y in logs.items()}
    return {n: {r: v - centre[n] - effect[r] for r, v in y.items()} for n, y in logs.items()}


@lru_cache(maxsize=1024)
def _limit(launches: int, df: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(max(1.0, EFFICIENCY * df), 1 - CHANCE / (2 * launches)))

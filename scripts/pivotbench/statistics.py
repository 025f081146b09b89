"""Between-round noise, ratios with intervals, equivalence, and how many more rounds would decide.

Model. One value y = log(metric) a round of a configuration; y_ir = mu_i + e_ir, the e_ir independent
between launches, normal, and of one variance for every healthy configuration of a phase. That variance
is estimated once, pooled over configurations, with df = sum(n_i - 1) degrees of freedom: with the two to
five rounds that a study can pay for, a variance of a pair's own (df 1 to 8) would need intervals many
times as wide, and Welch's correction with two rounds has next to no power. What the assumption costs: a
configuration much noisier than its peers has too narrow an interval, a much quieter one too wide.

Rounds are interleaved over configurations, so a drift of the machine hits a round of all of them alike.
Ratios are therefore taken between the same rounds where two configurations share at least two of them:
the drift cancels in the ratio, while it stays in the pooled variance, which errs on the wide side.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

Rounds = Mapping[int, float]  # round -> metric value, > 0

MAX_ROUNDS_NEEDED = 1000
POWER = 0.8


@dataclass(frozen=True)
class Noise:
    """Launch-to-launch standard deviation on the log scale (0.01 is about 1 %) and its df."""

    sd: float
    df: int


@dataclass(frozen=True)
class Interval:
    """A confidence interval for a ratio or a mean; positive numbers."""

    low: float
    high: float

    def inside_margin(self, margin: float) -> bool:
        """Whether the whole interval of a ratio lies within 1/(1 + margin) .. 1 + margin.

        This is the two one-sided tests procedure: each of "slower by the margin or more" and "faster by
        the margin or more" is rejected at half the interval's error rate. Its usual form takes an
        interval of twice that rate; the wider one is kept so that the printed interval alone shows why
        a verdict was given. Schuirmann (1987), https://doi.org/10.1007/BF01068419.
        """
        return 1 / (1 + margin) <= self.low and self.high <= 1 + margin


def pooled_noise(values: Iterable[Rounds]) -> Noise | None:
    """Return the pooled within-configuration sd of log values; None where no configuration has two rounds.

    ``values``: for each healthy configuration, its metric by round.
    """
    squares, df = 0.0, 0
    for rounds in values:
        logs = [math.log(v) for v in rounds.values()]
        if len(logs) > 1:
            mean = math.fsum(logs) / len(logs)
            squares += math.fsum((y - mean) ** 2 for y in logs)
            df += len(logs) - 1
    return Noise(math.sqrt(squares / df), df) if df else None


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean of positive numbers, at least one."""
    logs = [math.log(v) for v in values]
    return math.exp(math.fsum(logs) / len(logs))


def ratio(a: Rounds, b: Rounds) -> tuple[float, int, int]:
    """Return mean(a) / mean(b) on the log scale, and how many rounds of each it rests on.

    Only the shared rounds count where there are at least two of them; see the module's text.
    """
    shared = a.keys() & b.keys()
    if len(shared) >= 2:
        a, b = {r: a[r] for r in shared}, {r: b[r] for r in shared}
    return geometric_mean(a.values()) / geometric_mean(b.values()), len(a), len(b)


def ratio_interval(centre: float, n_a: int, n_b: int, noise: Noise, error: float) -> Interval:
    """Return the two-sided interval of error rate ``error`` around what ``ratio`` gave (Student's t)."""
    half = t_quantile(1 - error / 2, noise.df) * noise.sd * math.sqrt(1 / n_a + 1 / n_b)
    return _around(centre, half)


def mean_interval(values: Rounds, noise: Noise, error: float) -> Interval:
    """Return the two-sided interval of one configuration's mean over its rounds."""
    half = t_quantile(1 - error / 2, noise.df) * noise.sd / math.sqrt(len(values))
    return _around(geometric_mean(values.values()), half)


def bonferroni(confidence: float, comparisons: int, looks: int) -> float:
    """Return the error rate left to one comparison at one look.

    Bonferroni's inequality: whatever the dependence between them, all intervals of all looks hold
    together with probability ``confidence``. Dunn (1961), https://doi.org/10.1080/01621459.1961.10482090.
    """
    return (1 - confidence) / (max(1, comparisons) * max(1, looks))


def rounds_needed(
    centre: float, sd: float, have: int, others_df: int, error: float, margin: float
) -> int | None:
    """Return how many further rounds of both would likely settle a pair that is now undecided.

    "Likely": with a probability of 80 %, if the present ratio ``centre`` and ``sd`` are the truth. The
    smallest n at which (t(1 - error/2) + t(0.8)) * sd * sqrt(2/n) is below the distance of log(centre)
    from 0 (a difference shows) or from the margin (equivalence shows). ``others_df``: degrees of freedom
    that other configurations lend to the sd. None where a thousand would not do.
    """
    effect = abs(math.log(centre))
    gap = max(effect, math.log1p(margin) - effect)
    for n in range(max(2, have + 1), MAX_ROUNDS_NEEDED):
        df = others_df + 2 * (n - 1)
        if (t_quantile(1 - error / 2, df) + t_quantile(POWER, df)) * sd * math.sqrt(2 / n) <= gap:
            return n - have
    return None


@lru_cache(maxsize=4096)
def t_quantile(probability: float, df: int) -> float:
    """Return Student's t quantile."""
    from scipy.special import stdtrit

    return float(stdtrit(df, probability))


def _around(centre: float, half_log: float) -> Interval:
    return Interval(centre * math.exp(-half_log), centre * math.exp(half_log))

"""What rounds say of configurations: ratios with intervals, noise, equivalence, and what more rounds promise.

Model. One value y = log(metric) a round of a configuration: y_ir = m_i + d_r + e_ir. m_i is the
configuration, d_r what round r did to all alike (rounds are interleaved, so a drift of the machine is in
it), e_ir what this one launch changed: independent between launches, normal, of one variance for every
healthy configuration of a phase. Least squares give m_i and d_r, also where a race has asked for some
configurations in fewer rounds: Searle (1971), Linear Models, chapter 7 (two-way, no interaction). The
residuals of all configurations together give the variance: with the two to five rounds that a study can pay
for, a variance of a pair's own would need intervals many times as wide. What that costs: a configuration
much noisier than its peers has too narrow an interval, a much quieter one too wide.

Where the residuals of that model would have fewer than eight degrees of freedom (two or three
configurations, two rounds), rounds stay in the noise: a drift then widens every interval, and a handful of
launches is not asked for more than it can tell.

Launches that do not belong to the rest are set aside first: see ``oddities``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from pivotbench.decision.oddities import odd_launches, unsteady
from pivotbench.decision.spending import Risk

Rounds = Mapping[int, float]  # round -> metric value, > 0

ENOUGH_DF = 8
MAX_ROUNDS_NEEDED = 1000
POWER = 0.8
NEGLIGIBLE = 1e-9
LARGEST = 700.0  # logarithm of about the largest float


@dataclass(frozen=True)
class Noise:
    """Standard deviation between launches on the log scale (0.01 is about 1 %) and its degrees of freedom."""

    sd: float
    df: int


@dataclass(frozen=True)
class Interval:
    """A confidence interval for a ratio or a mean; positive numbers."""

    low: float
    high: float

    def inside_margin(self, margin: float) -> bool:
        """Whether the whole interval of a ratio lies within 1/(1 + margin) .. 1 + margin.

        This is the two one-sided tests procedure, each test at the error rate of one end of the interval.
        Schuirmann (1987), https://doi.org/10.1007/BF01068419.
        """
        return 1 / (1 + margin) <= self.low and self.high <= 1 + margin


@dataclass(frozen=True)
class Difference:
    """The log ratio of two configurations; its variance is ``factor`` times that of one launch.

    ``rounds``: those of the one that has fewer, odd launches not counted.
    """

    log: float
    factor: float
    rounds: int

    @property
    def ratio(self) -> float:
        """The ratio itself."""
        return math.exp(self.log)

    def half(self, noise: Noise, error: float) -> float:
        """Return half the width, on the log scale, of the interval that ``interval`` returns."""
        return t_quantile(1 - error, noise.df) * noise.sd * math.sqrt(self.factor)

    def interval(self, noise: Noise, error: float) -> Interval:
        """Return the interval that errs with probability ``error`` at each of its ends (Student's t)."""
        half = self.half(noise, error)
        return Interval(math.exp(self.log - half), math.exp(min(self.log + half, LARGEST)))


@dataclass(frozen=True)
class Fit:
    """The model fitted to the rounds of a phase; made by ``fit``.

    ``noise``: None where nothing was relaunched. ``odd``: the launches set aside. ``unsteady``:
    configurations of which more than a third of the launches is odd: nothing can be said of them.
    """

    noise: Noise | None
    odd: frozenset[tuple[str, int]]
    unsteady: frozenset[str]
    used: Mapping[str, Rounds]
    _log_means: Mapping[str, float] = field(repr=False)
    _order: tuple[int, ...] = field(repr=False)
    _information: Any = field(repr=False)  # of the rounds' effects, and its pseudo-inverse
    _spread: Any = field(repr=False)

    def mean(self, name: str) -> float:
        """Return a configuration's mean at the average round of the phase."""
        return math.exp(self._log_means[name])

    def log_ratio(self, a: str, b: str) -> float:
        """Return log a - log b of two fitted means."""
        return self._log_means[a] - self._log_means[b]

    def difference(self, a: str, b: str) -> Difference | None:
        """Return log a - log b; None where no chain of shared rounds connects the two, or one is not fitted.

        The variance factor is 1/n_a + 1/n_b and, where they did not run in the same rounds, what it costs
        that the rounds between must be estimated from the others.
        """
        import numpy as np

        if a not in self.used or b not in self.used:
            return None
        n_a, n_b = len(self.used[a]), len(self.used[b])
        if self.used[a].keys() == self.used[b].keys():
            return Difference(self.log_ratio(a, b), 1 / n_a + 1 / n_b, n_a)
        apart = np.array([self._share(a, r) - self._share(b, r) for r in self._order])
        through = self._spread @ apart
        if np.abs(self._information @ through - apart).max(initial=0) > 1e-6:
            return None
        factor = 1 / n_a + 1 / n_b + float(apart @ through)
        return Difference(self.log_ratio(a, b), factor, min(n_a, n_b))

    def _share(self, name: str, round_: int) -> float:
        return 1 / len(self.used[name]) if round_ in self.used[name] else 0.0


def fit(values: Mapping[str, Rounds]) -> Fit:
    """Fit the model of the module's text to each configuration's metric by round (at least one each)."""
    import numpy as np

    odd = odd_launches(values)
    used = {
        name: {r: v for r, v in sorted(rounds.items()) if (name, r) not in odd}
        for name, rounds in sorted(values.items())
    }
    order = tuple(sorted({r for rounds in used.values() for r in rounds}))
    logs = {name: {r: math.log(v) for r, v in rounds.items()} for name, rounds in used.items()}
    raw = {name: math.fsum(y.values()) / len(y) for name, y in logs.items()}
    # The configurations are swept out, then the rounds' effects solve `information @ effects = left`.
    information = rounds_information(used, order)
    left = np.array([math.fsum(y[r] - raw[n] for n, y in logs.items() if r in y) for r in order])
    spread = np.linalg.pinv(information, rcond=NEGLIGIBLE, hermitian=True)
    effects = dict(zip(order, (spread @ left).tolist(), strict=True))
    means = {n: raw[n] - math.fsum(effects[r] for r in y) / len(y) for n, y in logs.items()}
    rank = int(np.linalg.matrix_rank(information, tol=1e-6, hermitian=True))
    launches = sum(map(len, logs.values()))
    df = launches - len(logs) - rank
    if df >= ENOUGH_DF:
        residuals = [y[r] - means[n] - effects[r] for n, y in logs.items() for r in y]
    else:
        df = launches - len(logs)
        residuals = [y[r] - raw[n] for n, y in logs.items() for r in y]
    squares = math.fsum(e * e for e in residuals)
    noise = Noise(math.sqrt(squares / df), df) if df else None
    return Fit(noise, odd, unsteady(values, odd), used, means, order, information, spread)


def rounds_information(used: Mapping[str, Rounds], order: Sequence[int]) -> Any:
    """Return what the launches tell of the rounds' effects once every configuration's mean is swept out.

    A square matrix over the rounds in ``order``, of which the rank is the number of effects that can be told.
    """
    import numpy as np

    ran = np.array([[float(r in rounds) for r in order] for rounds in used.values()])
    ran = ran.reshape(len(used), len(order))
    return np.diag(ran.sum(0)) - ran.T @ (ran / np.maximum(ran.sum(1, keepdims=True), 1))


def pooled_noise(values: Iterable[Rounds]) -> Noise | None:
    """Return the pooled sd of log values within configurations, rounds' effects included.

    It is the noise of a mean's own level. None where no configuration has two rounds.
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


def mean_interval(mean: float, rounds: int, noise: Noise, error: float) -> Interval:
    """Return the two-sided interval of error rate ``error`` of one configuration's ``mean``."""
    half = min(t_quantile(1 - error / 2, noise.df) * noise.sd / math.sqrt(rounds), LARGEST / 2)
    return Interval(mean * math.exp(-half), mean * math.exp(half))


def rounds_needed(found: Difference, noise: Noise, risk: Risk, margin: float, *, to_best: bool) -> int | None:
    """Return how many further rounds of both would likely settle a pair that is now undecided.

    "Likely": with a probability of 80 %, if the present ratio and sd are the truth. The smallest n at which
    (t(1 - error) + t(0.8)) * sd * sqrt(2/n) is below the distance of the log ratio from 0 (a difference
    shows) or from the margin (equivalence shows). None where a thousand would not do.
    """
    effect = abs(found.log)
    others_df = max(0, noise.df - 2 * (found.rounds - 1))
    for n in range(max(2, found.rounds + 1), MAX_ROUNDS_NEEDED):
        df = others_df + 2 * (n - 1)
        se = noise.sd * math.sqrt(2 / n)
        for error, gap in (
            (risk.difference(n), effect),
            (risk.equivalence(n, to_best=to_best), math.log1p(margin) - effect),
        ):
            if (t_quantile(1 - error, df) + t_quantile(POWER, df)) * se <= gap:
                return n - found.rounds
    return None


def chances_to_settle(
    found: Difference, noise: Noise, risk: Risk, margin: float, horizon: int, *, to_best: bool
) -> tuple[float, float]:
    """Return how likely an undecided pair is equivalent, or different, once it has ``horizon`` rounds.

    The predictive probability given the rounds so far, with a flat prior: the difference seen then is
    Student-t around the present one with variance 2 sd**2 (1/n - 1/horizon). Spiegelhalter, Freedman and
    Blackburn (1986), https://doi.org/10.1016/0197-2456(86)90003-6.
    """
    if horizon <= found.rounds:
        return 0.0, 0.0
    effect, se = abs(found.log), noise.sd * math.sqrt(2 / horizon)
    spread = noise.sd * math.sqrt(2 / found.rounds - 2 / horizon)
    df = noise.df + 2 * (horizon - found.rounds)
    inside = math.log1p(margin) - t_quantile(1 - risk.equivalence(horizon, to_best=to_best), df) * se
    beyond = t_quantile(1 - risk.difference(horizon), df) * se
    if spread == 0:
        return float(effect <= inside), float(effect >= beyond)
    at = [t_probability((edge - effect) / spread, noise.df) for edge in (-beyond, -inside, inside, beyond)]
    return max(0.0, at[2] - at[1]), at[0] + 1 - at[3]


def chance_above_margin(found: Difference, noise: Noise, margin: float) -> float:
    """Return the probability, given the rounds so far and a flat prior, that a exceeds b by the margin."""
    scale = noise.sd * math.sqrt(found.factor)
    if scale == 0:
        return float(found.log > math.log1p(margin))
    return 1 - t_probability((math.log1p(margin) - found.log) / scale, noise.df)


@lru_cache(maxsize=65536)
def t_quantile(probability: float, df: int) -> float:
    """Return Student's t quantile."""
    from scipy.special import stdtrit

    return float(stdtrit(df, probability))


def t_probability(value: float, df: int) -> float:
    """Return Student's t distribution function."""
    from scipy.special import stdtr

    return float(stdtr(df, value))

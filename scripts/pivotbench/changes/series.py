"""Two series of launches that were not run together, and what may be said of a pair across them.

Within a study all configurations run in the same rounds, so that what a round does to all cancels. Between
two folders nothing of the kind holds: each has its own rounds d_r, at other times, perhaps on other
machines. So a launch y_ir = m_i + d_r + e_ir is judged with its round's effect as noise: a configuration's
level is the mean of its own launches and has the variance (var d + var e) / n. Each folder has a variance
of its own, and the difference of two levels is judged by Welch's t: Welch (1947),
https://doi.org/10.1093/biomet/34.1-2.28.

The variance of one launch is pooled over a phase's configurations, Q = sum of squares within configurations
over its f degrees of freedom. Where rounds matter these do not count in full, for all configurations share
each d_r. Its effective degrees of freedom follow from the mean and the variance of Q (Satterthwaite 1946,
https://doi.org/10.2307/3002019): with K the information on the rounds' effects (statistics) and |K|2 the
sum of its squared elements, the mean is f (var d + var e), the variance 2 (f var e**2 + 2 f var d var e +
|K|2 var d**2). It lies between f where rounds do nothing and, of R rounds with everybody in them, R - 1
where they do all. var e is estimated by the residuals of the two-way fit, var d by what is left.

What no launch can tell: what happened between the two series. A machine that has become slower since looks
like a change of the configuration, and is part of every ratio.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from pivotbench.decision.oddities import odd_launches, unsteady
from pivotbench.decision.statistics import (
    NEGLIGIBLE,
    Difference,
    Noise,
    Rounds,
    geometric_mean,
    pooled_noise,
    rounds_information,
)


@dataclass(frozen=True)
class Series:
    """One folder's launches of a phase: the metric by configuration and round, odd launches set aside.

    ``noise``: of one launch, its round's effect included, with the effective degrees of freedom; None where
    nothing was relaunched.
    """

    used: Mapping[str, Rounds]
    noise: Noise | None
    odd: frozenset[tuple[str, int]]
    unsteady: frozenset[str]


def series(values: Mapping[str, Rounds]) -> Series:
    """Return the series of one phase of one folder; ``values``: the metric by round, positive."""
    odd = odd_launches(values)
    used = {
        name: {r: v for r, v in sorted(rounds.items()) if (name, r) not in odd}
        for name, rounds in sorted(values.items())
        if rounds
    }
    return Series(used, _launch_noise(used), odd, unsteady(values, odd))


def apart(new: Series, a: str, old: Series, b: str) -> tuple[Difference, Noise | None]:
    """Return log a - log b for ``a`` of one series and ``b`` of another, and the noise it is judged by.

    Both must have launches. The noise is that of a launch of either, in the mean; its degrees of freedom are
    Welch's for this pair, rounded down. None where either folder relaunched nothing.
    """
    ours, theirs = new.used[a], old.used[b]
    log = math.log(geometric_mean(ours.values())) - math.log(geometric_mean(theirs.values()))
    counts = 1 / len(ours) + 1 / len(theirs)
    fewer = min(len(ours), len(theirs))
    if new.noise is None or old.noise is None:
        return Difference(log, counts, fewer), None
    launch = (new.noise.sd**2 + old.noise.sd**2) / 2
    if launch == 0:
        return Difference(log, counts, fewer), Noise(0.0, new.noise.df + old.noise.df)
    one, other = new.noise.sd**2 / len(ours), old.noise.sd**2 / len(theirs)
    df = (one + other) ** 2 / (one**2 / new.noise.df + other**2 / old.noise.df)
    return Difference(log, (one + other) / launch, fewer), Noise(math.sqrt(launch), max(1, int(df)))


def _launch_noise(used: Mapping[str, Rounds]) -> Noise | None:
    import numpy as np

    pooled = pooled_noise(used.values())
    if pooled is None or pooled.sd == 0:
        return pooled
    order = sorted({r for rounds in used.values() for r in rounds})
    information = rounds_information(used, order)
    total, df = pooled.sd**2, pooled.df
    deviations = [
        {r: math.log(v) - math.log(geometric_mean(rounds.values())) for r, v in rounds.items()}
        for rounds in used.values()
    ]
    left = np.array([math.fsum(d[r] for d in deviations if r in d) for r in order])
    of_rounds = float(left @ np.linalg.pinv(information, rcond=NEGLIGIBLE, hermitian=True) @ left)
    residual_df = df - int(np.linalg.matrix_rank(information, tol=1e-6, hermitian=True))
    # Without residuals nothing tells the two apart; then all may be the rounds'.
    own = min(total, max(0.0, total * df - of_rounds) / residual_df) if residual_df else 0.0
    shared = total - own
    squares = float((information**2).sum())
    spread = df * own**2 + 2 * df * own * shared + squares * shared**2
    return Noise(pooled.sd, max(1, int((df * total) ** 2 / spread)))

"""The verdict on a pair of configurations, and what else differed between them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from pivotbench.decision.fairness import Serving, environments_differ
from pivotbench.decision.spending import Risk
from pivotbench.decision.statistics import (
    NEGLIGIBLE,
    Difference,
    Fit,
    Interval,
    Noise,
    Rounds,
    geometric_mean,
    rounds_needed,
)

Verdict = Literal["faster", "slower", "equivalent", "undecided", "not_comparable"]
# What an undecided verdict says by itself.
UNSETTLED = "the interval does not settle it"


@dataclass(frozen=True)
class Subject:
    """One configuration that may be compared: its metric by round and the servers it ran on.

    ``at_least``, ``at_most``: in some round the metric is known only to be as high or as low as that, so that
    more or less is no finding; ``between``: only well enough to be ordered, so that equal is none.
    """

    configuration: str
    rounds: Rounds
    unranked: Mapping[int, str] = field(default_factory=dict)
    environments: frozenset[str] = frozenset()
    serving: Serving = field(default_factory=Serving)
    at_least: bool = False
    at_most: bool = False
    between: bool = False


@dataclass(frozen=True)
class Yardstick:
    """What a pair is judged by: the fitted rounds, the risk that may be taken, the margin.

    ``best``: who leads by these very rounds; None where all are set against a baseline fixed beforehand.
    ``prior_sd`` (log scale) stands in for the noise while none is measured, to estimate further rounds only.
    """

    fit: Fit
    risk: Risk
    margin: float
    best: str | None = None
    prior_sd: float | None = None

    @cached_property
    def reach(self) -> float:
        """How far apart (log scale) two fitted means may lie and still be shown to be equivalent.

        It is the margin less half of the narrowest interval that a pair may have; negative where the
        launches are too few or too noisy for any pair.
        """
        noise = self.fit.noise
        if noise is None:
            return -math.inf
        most = max(map(len, self.fit.used.values()), default=0)
        halves = [
            Difference(0.0, 1 / fewer + 1 / most, fewer).half(
                noise, max(self.risk.equivalence(fewer, to_best=to_best) for to_best in (True, False))
            )
            for fewer in range(2, most + 1)
        ]
        return math.log1p(self.margin) - min(halves, default=math.inf) + NEGLIGIBLE


@dataclass(frozen=True)
class Comparison:
    """How ``a`` stands to ``b``: ``ratio`` > 1 means that a has more tokens per second.

    ``ci`` is the interval that carries the verdict, already corrected for the number of comparisons and
    looks: wholly beyond 1 for faster and slower, wholly within the margin for equivalent. ``rounds_needed``
    is an estimate, given only where the verdict is undecided. ``reason`` says why there is no decision.
    """

    a: str
    b: str
    verdict: Verdict
    ratio: float | None = None
    ci: Interval | None = None
    rounds_needed: int | None = None
    confounders: tuple[str, ...] = ()
    reason: str | None = None


def judge(a: Subject, b: Subject, by: Yardstick) -> Comparison:
    """Return the verdict on a pair.

    Precedence: different environments are ``not_comparable``; fewer than two rounds of either decide
    nothing; an interval wholly inside the margin is ``equivalent``, even where it excludes 1 (a real
    difference too small to matter); one that excludes 1 is ``faster`` or ``slower``; the rest is
    ``undecided``.
    """
    names = (a.configuration, b.configuration)
    if len(together := a.environments | b.environments) > 1:
        how = environments_differ(together)
        reason = f"measured in different environments{how and f': {how}'}"
        return Comparison(*names, "not_comparable", reason=reason)
    if not a.rounds or not b.rounds:
        reasons = sorted({r for s in (a, b) if not s.rounds for r in s.unranked.values()}) or ["not measured"]
        return Comparison(*names, "undecided", reason=", ".join(reasons))
    found = by.fit.difference(*names)
    if found is None:
        raw = geometric_mean(a.rounds.values()) / geometric_mean(b.rounds.values())
        return Comparison(*names, "undecided", raw, reason="no rounds connect the two")
    return settle(
        names,
        found,
        by.fit.noise,
        by.risk,
        by.margin,
        to_best=by.best in names,
        unsteady=[name for name in names if name in by.fit.unsteady],
        set_aside=any(name in names for name, _ in by.fit.odd),
    )


def settle(
    names: tuple[str, str],
    found: Difference,
    noise: Noise | None,
    risk: Risk,
    margin: float,
    *,
    to_best: bool = False,
    unsteady: Sequence[str] = (),
    set_aside: bool = False,
) -> Comparison:
    """Return what a difference between two configurations proves, given the noise of a launch.

    ``unsteady``: of whose launches more than a third is odd. ``set_aside``: odd launches were left out.
    """
    interval = found.interval(noise, risk.difference(found.rounds)) if noise else None
    if unsteady:
        reason = f"launches of {' and '.join(sorted(unsteady))} contradict each other"
        return Comparison(*names, "undecided", found.ratio, interval, reason=reason)
    if noise is None or interval is None or found.rounds < 2:
        aside = " (odd launches are set aside)" if set_aside else ""
        reason = f"a single round decides nothing{aside}"
        return Comparison(*names, "undecided", found.ratio, interval, reason=reason)
    narrow = found.interval(noise, risk.equivalence(found.rounds, to_best=to_best))
    if narrow.inside_margin(margin):
        return Comparison(*names, "equivalent", found.ratio, narrow)
    if interval.low > 1 or interval.high < 1:
        return Comparison(*names, "faster" if interval.low > 1 else "slower", found.ratio, interval)
    return Comparison(*names, "undecided", found.ratio, interval, reason=UNSETTLED)


def compare(a: Subject, b: Subject, by: Yardstick) -> Comparison:
    """Return the verdict on a pair and, where it is undecided, the rounds that would likely settle it."""
    result = judge(a, b, by)
    if result.verdict != "undecided" or result.ratio is None:
        return result
    found = by.fit.difference(result.a, result.b) or Difference(math.log(result.ratio), 2.0, 1)
    noise = by.fit.noise or (Noise(by.prior_sd, 0) if by.prior_sd is not None else None)
    if noise is None:
        return result
    to_best = by.best in (result.a, result.b)
    needed = rounds_needed(found, noise, by.risk, by.margin, to_best=to_best)
    return replace(result, rounds_needed=needed)

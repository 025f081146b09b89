"""What the decision has to achieve, and whether it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.decision.law import COMMITTED, MARGIN, SPREADS
from benchmarks.decision.methods import Score

FALSE_MOST = 0.05
WITHIN_MARGIN_LEAST = 0.95
EQUAL_LEAST = 0.80
GAP_LEAST = 0.90
GPU_SECONDS_MOST = 0.50
POWER_AT = ("known", str(SPREADS[0]))
Place = tuple[str, str]


@dataclass(frozen=True)
class Tally:
    """The campaigns of one law and spread by one method, as shares; ``gpu_seconds`` is their mean."""

    campaigns: int
    false: float
    within_margin: float
    within_one: float
    gpu_seconds: float
    undecided: float
    equal: float
    gap: float


def tallied(scores: Sequence[Score]) -> Tally:
    """Return the shares of some campaigns."""
    count = len(scores)
    return Tally(
        campaigns=count,
        false=sum(s.false for s in scores) / count,
        within_margin=sum(s.loss <= MARGIN for s in scores) / count,
        within_one=sum(s.loss <= 0.01 for s in scores) / count,
        gpu_seconds=sum(s.gpu_seconds for s in scores) / count,
        undecided=sum(s.undecided for s in scores) / count,
        equal=_share([s.equal for s in scores]),
        gap=_share([s.gap for s in scores]),
    )


def cost_share(by: Mapping[Place, Tally], sweeps: Mapping[Place, float]) -> float:
    """Return GPU-seconds over those of five rounds for all, each committed law and spread weighing alike."""
    ratios = [tally.gpu_seconds / sweeps[at] for at, tally in by.items() if at[0] in COMMITTED]
    return sum(ratios) / len(ratios)


def misses(by: Mapping[Place, Tally], sweeps: Mapping[Place, float]) -> list[str]:
    """Return the targets that are missed, each as one line of figures.

    A false verdict must be rare in every law at every spread; the choice good in each committed law over its
    spreads; the power enough at the smallest spread; the cost low over all committed laws and spreads.
    """
    missed = [
        f"{' '.join(at)}: a false verdict in {percent(tally.false)}, at most {percent(FALSE_MOST, 0)}"
        for at, tally in by.items()
        if tally.false > FALSE_MOST
    ]
    for law in COMMITTED:
        chosen = [tally.within_margin for at, tally in by.items() if at[0] == law]
        if (share := sum(chosen) / len(chosen)) < WITHIN_MARGIN_LEAST:
            missed.append(
                f"{law}: within the margin in {percent(share)}, at least {percent(WITHIN_MARGIN_LEAST, 0)}"
            )
    power = by[POWER_AT]
    if power.equal < EQUAL_LEAST:
        missed.append(f"equals called so in {percent(power.equal)}, at least {percent(EQUAL_LEAST, 0)}")
    if power.gap < GAP_LEAST:
        missed.append(f"a 3 % gap found in {percent(power.gap)}, at least {percent(GAP_LEAST, 0)}")
    if (share := cost_share(by, sweeps)) > GPU_SECONDS_MOST:
        missed.append(f"GPU-seconds {share:.3f} of five rounds for all, at most {GPU_SECONDS_MOST}")
    return missed


def percent(share: float, digits: int = 1) -> str:
    """Return a share as a percentage."""
    return f"{100 * share:.{digits}f} %"


def _share(counts: Sequence[tuple[int, int]]) -> float:
    total = sum(all_ for _, all_ in counts)
    return sum(hits for hits, _ in counts) / total if total else 0.0

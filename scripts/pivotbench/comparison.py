"""The verdict on a pair of configurations, and what else differed between them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pivotbench.statistics import Interval, Noise, Rounds, ratio, ratio_interval, rounds_needed

Verdict = Literal["faster", "slower", "equivalent", "undecided", "not_comparable"]

# Settings that differ between any two launches and mean nothing for speed.
_INCIDENTAL = ("port", "host", "served", "seed", "nccl", "dist_init", "log", "metrics", "api_key", "version")


@dataclass(frozen=True)
class Subject:
    """One configuration that may be compared: its metric by round and the servers it ran on."""

    configuration: str
    rounds: Rounds
    unranked: Mapping[int, str] = field(default_factory=dict)
    environments: frozenset[str] = frozenset()
    requested: Mapping[str, Any] = field(default_factory=dict)
    effective: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Comparison:
    """How ``a`` stands to ``b``: ``ratio`` > 1 means that a has more tokens per second.

    ``ci`` is already corrected for the number of comparisons and looks. ``rounds_needed`` is an estimate,
    given only where the verdict is undecided. ``reason`` says why there is no decision.
    """

    a: str
    b: str
    verdict: Verdict
    ratio: float | None = None
    ci: Interval | None = None
    rounds_needed: int | None = None
    confounders: tuple[str, ...] = ()
    reason: str | None = None


def judge(a: Subject, b: Subject, noise: Noise | None, *, error: float, margin: float) -> Comparison:
    """Return the verdict on a pair.

    Precedence: different environments are ``not_comparable``; fewer than two rounds of either decide
    nothing; an interval wholly inside the margin is ``equivalent``, even where it excludes 1 (a real
    difference too small to matter); one that excludes 1 is ``faster`` or ``slower``; the rest is
    ``undecided``.
    """
    names = (a.configuration, b.configuration)
    if len(a.environments | b.environments) > 1:
        return Comparison(*names, "not_comparable", reason="measured in different environments")
    if not a.rounds or not b.rounds:
        reasons = sorted({r for s in (a, b) if not s.rounds for r in s.unranked.values()}) or ["not measured"]
        return Comparison(*names, "undecided", reason=", ".join(reasons))
    centre, n_a, n_b = ratio(a.rounds, b.rounds)
    interval = ratio_interval(centre, n_a, n_b, noise, error) if noise else None
    if interval is None or min(n_a, n_b) < 2:
        return Comparison(*names, "undecided", centre, interval, reason="a single round decides nothing")
    if interval.inside_margin(margin):
        return Comparison(*names, "equivalent", centre, interval)
    if interval.low > 1 or interval.high < 1:
        return Comparison(*names, "faster" if interval.low > 1 else "slower", centre, interval)
    return Comparison(*names, "undecided", centre, interval, reason="the interval does not settle it")


def compare(
    a: Subject, b: Subject, noise: Noise | None, *, error: float, margin: float, prior_sd: float | None = None
) -> Comparison:
    """Return the verdict on a pair and, where it is undecided, the rounds that would likely settle it.

    ``prior_sd`` (log scale) stands in for the noise while none is measured yet, for this estimate only.
    """
    result = judge(a, b, noise, error=error, margin=margin)
    sd = noise.sd if noise else prior_sd
    if result.verdict != "undecided" or result.ratio is None or sd is None:
        return result
    _, n_a, n_b = ratio(a.rounds, b.rounds)
    others_df = max(0, noise.df - (n_a - 1) - (n_b - 1)) if noise else 0
    needed = rounds_needed(result.ratio, sd, min(n_a, n_b), others_df, error, margin)
    return replace(result, rounds_needed=needed)


def settings_that_differ(a: Subject, b: Subject) -> tuple[str, ...]:
    """Return the effective settings that differ although neither configuration asked for them.

    E.g. speculation lowers max_running_requests. Numbers within 1 % of each other are the same; what an
    engine reports as a nested whole is compared part by part.
    """
    asked = {_spelling(name) for s in (a, b) for name in s.requested}
    ones, others = dict(_leaves("", a.effective)), dict(_leaves("", b.effective))
    found: dict[tuple[str, str, str], str] = {}
    wanted = set()
    for name in sorted(ones.keys() & others.keys(), key=lambda n: (n.count("."), n)):
        if _same(ones[name], others[name]):
            continue
        pair = (str(ones[name]), str(others[name]))
        if name in asked:
            wanted.add(pair)
        elif not any(word in name for word in _INCIDENTAL):
            # A data-parallel rank's state repeats what stands at the top.
            found.setdefault((name.rpartition(".")[2], *pair), f"{name}: {pair[0]} | {pair[1]}")
    # An asked setting under another spelling (speculative-algo) was asked for as well.
    return tuple(text for (_, *pair), text in found.items() if tuple(pair) not in wanted)


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield a setting's parts by dotted name: those of mappings, and of lists that hold any."""
    if isinstance(value, Mapping):
        parts = [(_spelling(str(key)), part) for key, part in value.items()]
    elif isinstance(value, list) and any(isinstance(part, Mapping | list) for part in value):
        parts = [(str(number), part) for number, part in enumerate(value)]
    else:
        yield name, value
        return
    for key, part in parts:
        yield from _leaves(f"{name}.{key}" if name else key, part)


def _spelling(name: str) -> str:
    return name.lstrip("-").replace("-", "_")


def _same(x: Any, y: Any) -> bool:
    if isinstance(x, int | float) and isinstance(y, int | float) and not isinstance(x, bool):
        return math.isclose(x, y, rel_tol=0.01)
    return bool(x == y)

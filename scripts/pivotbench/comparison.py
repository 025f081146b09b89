"""The verdict on a pair of configurations, and what else differed between them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pivotbench.conditions import Conditions
from pivotbench.spending import Risk
from pivotbench.statistics import Difference, Fit, Interval, Noise, Rounds, geometric_mean, rounds_needed

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
    conditions: Conditions = field(default_factory=Conditions)


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
    if len(a.environments | b.environments) > 1:
        return Comparison(*names, "not_comparable", reason="measured in different environments")
    if not a.rounds or not b.rounds:
        reasons = sorted({r for s in (a, b) if not s.rounds for r in s.unranked.values()}) or ["not measured"]
        return Comparison(*names, "undecided", reason=", ".join(reasons))
    found = by.fit.difference(*names)
    if found is None:
        raw = geometric_mean(a.rounds.values()) / geometric_mean(b.rounds.values())
        return Comparison(*names, "undecided", raw, reason="no rounds connect the two")
    noise = by.fit.noise
    interval = found.interval(noise, by.risk.difference(found.rounds)) if noise else None
    if wild := sorted(by.fit.unsteady & set(names)):
        reason = f"launches of {' and '.join(wild)} contradict each other"
        return Comparison(*names, "undecided", found.ratio, interval, reason=reason)
    if noise is None or interval is None or found.rounds < 2:
        aside = " (odd launches are set aside)" if any(name in names for name, _ in by.fit.odd) else ""
        reason = f"a single round decides nothing{aside}"
        return Comparison(*names, "undecided", found.ratio, interval, reason=reason)
    narrow = found.interval(noise, by.risk.equivalence(found.rounds, to_best=by.best in names))
    if narrow.inside_margin(by.margin):
        return Comparison(*names, "equivalent", found.ratio, narrow)
    if interval.low > 1 or interval.high < 1:
        return Comparison(*names, "faster" if interval.low > 1 else "slower", found.ratio, interval)
    return Comparison(*names, "undecided", found.ratio, interval, reason="the interval does not settle it")


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


def confounders(a: Subject, b: Subject) -> tuple[str, ...]:
    """Return what differed between the two beside what the study asked for: settings, then conditions."""
    return (*settings_that_differ(a, b), *a.conditions.unlike(b.conditions))


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

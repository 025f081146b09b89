"""Which rules of an engine hold for a set of flags, on a GPU and with a model, as far as these are known.

A test of a rule is one of these. A list: the value is in it. ``true``, ``false``: the flag is given or not.
A mapping: ``above``, ``below`` a number; ``not`` in a list; ``differs_from``, ``exceeds``,
``no_multiple_of`` another flag, ``plus`` a number. A flag that was not given passes only ``false``, or is
taken as its ``default``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pivotbench.engines.rules import BLOCKING, Outcome, Rule, canonical, rules_of

# Beyond what any flag counts; products of a few such numbers are still numbers.
MOST = 1e15


@dataclass(frozen=True)
class Facts:
    """What rules are asked about.

    ``flags`` as a study writes them; ``gpus``: how many the server is given; ``model``: kinds such as ``moe``
    and ``hybrid``, empty where it is unknown; ``weights``: how the checkpoint is quantised;
    ``capabilities``: the GPUs' major compute capabilities, empty where there are none to see;
    ``concurrency``: most requests at once that are sent.
    """

    flags: Mapping[str, Any]
    gpus: int = 0
    version: str | None = None
    model: frozenset[str] = frozenset()
    weights: str | None = None
    capabilities: tuple[int, ...] = ()
    concurrency: int | None = None


@dataclass(frozen=True)
class Finding:
    """What is expected, and why; ``flags``: those it speaks of, as they were written.

    ``certain``: the engine refuses, for the source of its very version, or of versions around it, was read.
    """

    id: str
    outcome: Outcome
    message: str
    source: str
    seen_in: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    certain: bool = False

    @property
    def blocks(self) -> bool:
        """Whether a launch is expected to fail."""
        return self.outcome in BLOCKING


def findings(engine: str, facts: Facts) -> list[Finding]:
    """Return what is known to happen under these facts, in the order of the rules."""
    given = canonical(engine, facts.flags)
    aliases, _ = rules_of(engine)
    written = {aliases.get(spelling, spelling): spelling for spelling in facts.flags}
    told = given | _derived(given, facts)
    rules = [rule for rule in rules_of(engine)[1] if _applies(rule, told, facts)]
    return [_finding(rule, given, written, facts) for rule in rules]


def gpus_needed(given: Mapping[str, Any]) -> int:
    """Return how many GPUs a server with these flags takes; with DP attention its groups share them."""
    tensor, pipeline, data = (number(given.get(name)) or 1 for name in ("tp-size", "pp-size", "dp-size"))
    return tensor * pipeline * (1 if "enable-dp-attention" in given else data)


def _derived(given: Mapping[str, Any], facts: Facts) -> dict[str, Any]:
    """What rules name beside flags: each side's attention backend, GPUs, the model, the load."""
    common = given.get("attention-backend")
    derived = {
        "attention.prefill": given.get("prefill-attention-backend", common),
        "attention.decode": given.get("decode-attention-backend", common),
        "gpus.needed": gpus_needed(given),
        "gpus.given": facts.gpus,
        "model": sorted(facts.model),
        "weights": given.get("quantization", facts.weights),
        "concurrency": facts.concurrency,
    }
    return {name: value for name, value in derived.items() if value}


# The flags that stand behind what is derived.
_BEHIND = {
    "attention.prefill": ("attention-backend", "prefill-attention-backend"),
    "attention.decode": ("attention-backend", "decode-attention-backend"),
    "gpus.needed": ("tp-size", "dp-size", "pp-size"),
}


def _applies(rule: Rule, told: Mapping[str, Any], facts: Facts) -> bool:
    if not any(
        case.needs <= told.keys() and all(_holds(told, key, test) for key, test in case.tests.items())
        for case in rule.when
    ):
        return False
    if rule.runs_on is not None and not set(facts.capabilities) - set(rule.runs_on):
        return False
    version, gone = _ordered(facts.version), _ordered(rule.gone_in)
    return gone is None or (version is not None and version < gone)


def _holds(told: Mapping[str, Any], key: str, test: Any) -> bool:
    if isinstance(test, bool):
        return (key in told) is test
    if isinstance(test, list):
        return bool(_words(told.get(key)) & _words(test))
    value = told.get(key, test.get("default"))
    if value is None:
        return False
    if "not" in test:
        return not _words(value) & _words(test["not"])
    own = number(value)
    if own is None:
        return False
    for name, compare in _COMPARISONS.items():
        if name in test:
            other = test[name] if isinstance(test[name], int) else number(told.get(test[name]))
            if other is None or not compare(own, other + test.get("plus", 0)):
                return False
    return True


_COMPARISONS: Mapping[str, Any] = {
    "above": lambda value, other: value > other,
    "below": lambda value, other: value < other,
    "differs_from": lambda value, other: value != other,
    "exceeds": lambda value, other: value > other,
    "no_multiple_of": lambda value, other: bool(other and value % other),
}


def _finding(rule: Rule, given: Mapping[str, Any], written: Mapping[str, str], facts: Facts) -> Finding:
    named = {flag for case in rule.when for key in case.tests for flag in _BEHIND.get(key, (key,))}
    return Finding(
        id=rule.id,
        outcome=rule.outcome,
        message=" ".join(rule.says.split()),
        source=rule.source,
        seen_in=rule.seen_in,
        links=rule.links,
        flags=tuple(written[name] for name in given if name in named),
        certain=rule.outcome == "refused" and _within(facts.version, rule.seen_in),
    )


def _within(version: str | None, seen_in: Sequence[str]) -> bool:
    ordered = _ordered(version)
    seen = [order for order in map(_ordered, seen_in) if order is not None]
    return ordered is not None and bool(seen) and min(seen) <= ordered <= max(seen)


def _ordered(version: str | None) -> tuple[int, ...] | None:
    numbers = re.match(r"\d+(\.\d+)*", version or "")
    return tuple(map(int, numbers[0].split("."))) if numbers else None


def _words(value: Any) -> set[str]:
    values = value if isinstance(value, list) else [value]
    return {str(v).lower() for v in values if v is not None}


def number(value: Any) -> int | None:
    """Return a flag's value as a whole number; None where it is none."""
    told = fraction(value)
    return None if told is None or told != int(told) else int(told)


def fraction(value: Any) -> float | None:
    """Return a flag's value as a number; None where it is none, or none that means anything."""
    try:
        told = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return told if abs(told) <= MOST else None

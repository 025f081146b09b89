"""What is known beforehand of an engine's flags: which sets it refuses, which kernels a GPU lacks.

The knowledge is data, in ``engines/<engine>-*.yaml``, each rule with the source it was read in. A rule says
when it holds and never acts by itself: a study that the engine would refuse is refused by study.conflicts,
everything else is a warning of the preflight.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

FOLDER = Path(__file__).parent

# refused   the engine ends by itself over these flags, before it loads anything
# fails     a launch ends with an error, on this model or GPU
# garbage   it runs, and answers have been seen to be wrong
# changed   the engine takes something else than was asked for
# doubtful  it runs, and is hardly what was meant
Outcome = Literal["refused", "fails", "garbage", "changed", "doubtful"]
BLOCKING: tuple[Outcome, ...] = ("refused", "fails")


@dataclass(frozen=True)
class Case:
    """Tests that must all hold, by what they are of; ``needs``: what must be there for that."""

    tests: Mapping[str, Any]
    needs: frozenset[str]


@dataclass(frozen=True)
class Rule:
    """One fact: under which conditions what happens, and where that was read.

    ``when``: alternatives; what a test may be, ``_holds`` says.
    ``runs_on``: major compute capabilities outside which it happens; None where the GPU does not matter.
    ``seen_in``: versions whose source was read; ``gone_in``: the first version read that has it no more.
    """

    id: str
    outcome: Outcome
    when: tuple[Case, ...]
    says: str
    source: str
    links: tuple[str, ...]
    seen_in: tuple[str, ...]
    gone_in: str | None
    runs_on: tuple[int, ...] | None


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


def canonical(engine: str, flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags that are given, under the names by which the rules know them."""
    aliases, _ = rules_of(engine)
    return {aliases.get(name, name): value for name, value in flags.items() if value not in (None, False)}


def gpus_needed(given: Mapping[str, Any]) -> int:
    """Return how many GPUs a server with these flags takes; with DP attention its groups share them."""
    tensor, pipeline, data = (number(given.get(name)) or 1 for name in ("tp-size", "pp-size", "dp-size"))
    return tensor * pipeline * (1 if "enable-dp-attention" in given else data)


@cache
def rules_of(engine: str) -> tuple[Mapping[str, str], tuple[Rule, ...]]:
    """Return an engine's aliases of flags and its rules, read once; empty where none are known."""
    import yaml

    aliases: dict[str, str] = {}
    rules: list[Rule] = []
    for path in sorted(FOLDER.glob(f"{engine}-*.yaml")):
        data = yaml.load(path.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        aliases |= data.get("aliases") or {}
        rules += [_rule(row, data["seen_in"]) for row in data["rules"]]
    return aliases, tuple(rules)


def _rule(row: Mapping[str, Any], seen_in: Sequence[str]) -> Rule:
    when = row["when"]
    return Rule(
        id=row["id"],
        outcome=row["outcome"],
        when=tuple(map(_case, when if isinstance(when, list) else [when])),
        says=row["says"],
        source=row["source"],
        links=tuple(row.get("links", ())),
        seen_in=tuple(row.get("seen_in", seen_in)),
        gone_in=row.get("gone_in"),
        runs_on=tuple(row["runs_on"]) if "runs_on" in row else None,
    )


def _case(tests: Mapping[str, Any]) -> Case:
    optional = {
        key for key, test in tests.items() if test is False or (isinstance(test, dict) and "default" in test)
    }
    return Case(tests, frozenset(tests) - optional)


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
    """Whether one test holds.

    A list: the value is in it. true, false: the flag is given or not. A mapping: ``above``, ``below`` a
    number; ``not`` in a list; ``differs_from``, ``exceeds``, ``no_multiple_of`` another flag, ``plus`` a
    number. A flag that was not given passes only ``false``, or is taken as its ``default``.
    """
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
    "no_multiple_of": lambda value, other: bool(value % other),
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
    try:
        return int(value)
    except (TypeError, ValueError):
        return None

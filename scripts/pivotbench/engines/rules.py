"""What is known beforehand of an engine's flags: which sets it refuses, which kernels a GPU lacks.

The knowledge is data, in ``engines/facts/<engine>-*.yaml``, each rule with the source it was read in. A rule
says when it holds and never acts by itself: a study that the engine would refuse is refused by
study.conflicts, everything else is a warning of the preflight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

FOLDER = Path(__file__).with_name("facts")

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

    ``when``: alternatives; what a test may be, ``findings`` says.
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


def canonical(engine: str, flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags that are given, under the names by which the rules know them."""
    aliases, _ = rules_of(engine)
    return {aliases.get(name, name): value for name, value in flags.items() if value not in (None, False)}

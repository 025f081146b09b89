"""A server's settings side by side: which differ though nobody asked for it, and what is known of why."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

from pivotbench.engines.spelling import Spelling

Settings = Mapping[str, Any]

# Settings that differ between any two launches and mean nothing for speed.
_INCIDENTAL = ("port", "host", "served", "seed", "nccl", "dist_init", "log", "metrics", "api_key", "version")
_NESTED = frozenset({dict, list})


def unasked_differences(
    spelling: Spelling, requested: tuple[Settings, Settings], settings: tuple[Settings, Settings]
) -> tuple[str, ...]:
    """Return the settings in effect, by dotted name, that differ although neither asked for them.

    Each is ``name: one | other``, with what the engine is known to change by itself in parentheses. Numbers
    within 1 % of each other are the same; what an engine reports as a nested whole is compared part by part,
    and what it states several times is said once, under its flag's name. Settings that belong to a flag that
    was asked for (the steps of a speculative algorithm) came with it.
    """
    asked = {spelled(name) for each in requested for name in each}
    ones, others = settings
    found = {
        t.flag: (one, other)
        for t in spelling.topics
        if not asked & {spelled(t.flag), *t.settings}
        and (one := t.told(ones)) is not None
        and (other := t.told(others)) is not None
        and not _same(one, other)
    }
    restated = tuple(name for t in spelling.topics for name in t.settings)
    wanted, seen = set(), set()
    differing = [name for name in ones.keys() & others.keys() if not _same(ones[name], others[name])]
    for name in sorted(differing, key=lambda n: (n.count("."), n)):
        if name.endswith(restated):
            continue
        pair = (str(ones[name]), str(others[name]))
        # A data-parallel rank's state repeats what stands at the top.
        told = (name.rpartition(".")[2], *pair)
        if name in asked:
            wanted.add(pair)
        elif told not in seen and not _without_meaning(name, spelling, asked):
            seen.add(told)
            found[name] = pair
    # An asked setting under another spelling (speculative-algo) was asked for as well.
    return tuple(
        f"{spelled(name)}: {pair[0]} | {pair[1]}{_why(spelling, asked, name)}"
        for name, pair in found.items()
        if (str(pair[0]), str(pair[1])) not in wanted
    )


def flat(settings: Settings) -> dict[str, Any]:
    """Return settings by dotted name: the parts of mappings, and of lists that hold any."""
    found: dict[str, Any] = {}
    _gather(found, "", settings)
    return found


@cache
def spelled(name: str) -> str:
    """Return a flag's or setting's name without dashes."""
    return name.lstrip("-").replace("-", "_")


def _without_meaning(name: str, spelling: Spelling, asked: set[str]) -> bool:
    if any(word in name for word in _INCIDENTAL) or any(word in name for word in spelling.says_nothing):
        return True
    return any(
        name.startswith(prefix) and any(flag.startswith(prefix) for flag in asked)
        for prefix in spelling.belongs
    )


def _why(spelling: Spelling, asked: set[str], name: str) -> str:
    for effect in spelling.side_effects:
        if spelled(name) == effect.setting and any(flag.startswith(effect.asked) for flag in asked):
            return f" ({effect.says})"
    return ""


def _gather(into: dict[str, Any], name: str, value: Any) -> None:
    if isinstance(value, dict):
        for key, part in value.items():
            _gather(into, f"{name}.{spelled(str(key))}" if name else spelled(str(key)), part)
    elif isinstance(value, list) and not _NESTED.isdisjoint(map(type, value)):
        for number, part in enumerate(value):
            _gather(into, f"{name}.{number}" if name else str(number), part)
    else:
        into[name] = value


def _same(x: Any, y: Any) -> bool:
    if x == y:
        return True
    numbers = isinstance(x, int | float) and isinstance(y, int | float) and not isinstance(x, bool)
    return numbers and math.isclose(x, y, rel_tol=0.01)

"""Requested against effective: every setting in which the server does otherwise, and who says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pivotbench.engines.base import Change
from pivotbench.engines.catalogue import FlagCatalogue


def overrides(
    requested: Mapping[str, Any],
    effective: Mapping[str, Any],
    changes: Sequence[Change] = (),
    catalogue: FlagCatalogue | None = None,
) -> list[dict[str, Any]]:
    """Return each requested flag whose value in effect is another, then each change that nobody asked for.

    A row is {flag, requested, effective, source, model: target|draft, ranks}: ``requested`` is null for a
    change nobody asked for, ``flag`` where the log tells of it in words alone (``effective`` is that line
    then), ``ranks`` lists the data-parallel ranks it holds for, [] for all. A flag that the server does not
    report is left out: nothing is known of it. ``auto`` leaves the choice to the engine, so what it chose was
    not asked for.
    """
    reported = {_plain(name): value for name, value in effective.items()}
    by_setting: dict[str, list[Change]] = {}
    for change in changes:
        if change.flag is not None:
            by_setting.setdefault(_plain(change.flag), []).append(change)
    rows = []
    for name, value in sorted(requested.items()):
        flag = catalogue.find(name) if catalogue else None
        setting = _plain(flag.setting if flag and flag.setting else name)
        if str(value).lower() == "auto":
            continue
        asked = flag.stores if flag and flag.stores is not None else value
        said = by_setting.pop(setting, []) or by_setting.pop(_plain(name), [])
        apart = [change for change in said if change.ranks]
        for change in apart:
            if _spelled(change.effective) != _spelled(asked):
                rows.append(_row(name, value, change))
        key = setting if setting in reported else _plain(name)
        if key in reported and not apart and _spelled(reported[key]) != _spelled(asked):
            source = said[-1].source if said else "server_info"
            model = said[-1].model if said else _model_of(key)
            rows.append(_row(name, value, Change(name, reported[key], source, model)))
    unasked = [change for left in by_setting.values() for change in left]
    words = [change for change in changes if change.flag is None]
    return rows + [_row(change.flag, None, change) for change in [*unasked, *words]]


def deprecations(requested: Mapping[str, Any], catalogue: FlagCatalogue | None) -> list[dict[str, str]]:
    """Return the requested flags that the engine calls deprecated, with what to use instead."""
    found = [(name, catalogue.find(name)) for name in sorted(requested)] if catalogue else []
    return [{"flag": name, "use": flag.deprecated} for name, flag in found if flag and flag.deprecated]


def _row(flag: str | None, requested: Any, change: Change) -> dict[str, Any]:
    return {
        "flag": flag,
        "requested": requested,
        "effective": change.effective,
        "source": change.source,
        "model": change.model,
        "ranks": list(change.ranks),
    }


def _model_of(setting: str) -> Any:
    return "draft" if setting.startswith("speculative-draft") else "target"


def _plain(name: str) -> str:
    return name.replace("_", "-")


def _spelled(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    text = str(value).lower()
    return {"true": "on", "false": "off", "enabled": "on", "disabled": "off"}.get(text, text)

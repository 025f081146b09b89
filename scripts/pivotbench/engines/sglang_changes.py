"""What SGLang chose or changed by itself: told by its schedulers in /server_info, and by lines of its log.

Each scheduler's state keeps ``_resolved_overrides`` (made before the launch) and ``_runtime_mutations`` (made
while it loaded), lists of ``[where, {setting: value}]``. A change made while the arguments are read, such as
the limit of running requests under speculation, leaves a line in the log alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from pivotbench.engines.base import Change

_KINDS = ("_resolved_overrides", "_runtime_mutations")
_DRAFT = re.compile(r"spec_|speculative_moe|draft", re.IGNORECASE)
_STAMP = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^\]]*\] (?:WARNING |INFO )?")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")

# Wordings by which SGLang (0.5.16, 0.5.23) says that it does otherwise than its arguments.
_CHANGED = re.compile(
    "|".join(
        (
            r"\b(is|are|be) (re)?set to\b",
            r"\b(is|are) (adjusted|automatically set)\b",
            r"\b(is|are) (forcibly )?(disabled|turned off|ignored)( because| for| when| by|\.|$)",
            r"\b(is|are|being|been) over(ridden|written)\b",
            r"\b[Oo]verriding\b",
            r"\b[Dd]isabling\b",
            r"\b[Ff]all(s|ing)? ?back (to|on)\b",
            r"\bchang(e|ing) \w+ (from|to)\b",
            r"\bnot specified\. (Use|Fall)",
            r"\bis not initialized, using\b",
            r"\bhas no effect\b",
            r"\bUnsupported \w+=",
        )
    )
)
# Of the request's tokens and of modules that are left out, no settings.
_UNRELATED = re.compile(r"server_args=|fallback token|fallback attr|Ignore import error|chat template|RLIMIT")


def changes(effective: Mapping[str, Any], log: Sequence[str]) -> list[Change]:
    """Return the changes of all data-parallel ranks, then those that only the log tells of.

    One that all ranks made alike is listed once; the last value of a setting on a rank counts.
    """
    states = [s for s in effective.get("internal_states") or [] if isinstance(s, Mapping)]
    ranks: dict[tuple[str, str, str], list[int]] = {}
    values: dict[tuple[str, str, str], Any] = {}
    for rank, state in enumerate(states):
        last: dict[str, tuple[str, Any]] = {}
        for source, setting, value in _told(state):
            last[setting] = source, value
        for setting, (source, value) in last.items():
            key = setting, source, repr(value)
            ranks.setdefault(key, []).append(rank)
            values[key] = value
    told = [
        Change(
            flag=setting.replace("_", "-"),
            effective=values[setting, source, text],
            source=source,
            model=_model_of(f"{setting} {source}"),
            ranks=() if len(where) == len(states) else tuple(where),
        )
        for (setting, source, text), where in ranks.items()
    ]
    return told + [Change(None, line, "log", _model_of(line)) for line in _logged(log)]


def differing_settings(effective: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the settings in which data-parallel ranks differ, with the value on each; {} where all agree."""
    states = [s for s in effective.get("internal_states") or [] if isinstance(s, Mapping)]
    names = dict.fromkeys(name for state in states for name in state if name not in _KINDS)

    def value(state: Mapping[str, Any], name: str) -> Any:
        # A rank's state leaves out what is as it was launched.
        return state.get(name, effective.get(name.replace("_", "-")))

    return {
        name: [value(state, name) for state in states]
        for name in names
        if any(value(state, name) != value(states[0], name) for state in states)
    }


def _told(state: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    for kind in _KINDS:
        for entry in state.get(kind) or ():
            if isinstance(entry, list | tuple) and len(entry) == 2 and isinstance(entry[1], Mapping):
                for setting, value in entry[1].items():
                    yield f"server_info {kind}: {entry[0]}", str(setting), value


def _logged(log: Sequence[str]) -> list[str]:
    """Return the lines that tell of a change, each once, without time stamps and ranks."""
    found: dict[str, None] = {}
    for line in log:
        stamp = _STAMP.search(line)
        text = _COLOUR.sub("", line[stamp.end() :] if stamp else "").strip()
        if _CHANGED.search(text) and not _UNRELATED.search(text):
            found.setdefault(text[:500])
    return list(found)


def _model_of(text: str) -> Literal["target", "draft"]:
    return "draft" if _DRAFT.search(text) else "target"

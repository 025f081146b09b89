"""What a run left in a folder of results, without what differs from run to run by nature."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

# Times, ids, sizes and figures of one launch or one load; who ended a server, and how gently.
_OWN = frozenset(
    {"started", "ended", "launch_id", "relaunched", "log", "why", "signals", "seconds", "exit_code", "memory"}
    | {
        "phases",
        "ready_seconds",
        "environment",
        "sha256",
        "rows",
        "warmup",
        "client",
        "telemetry",
        "warnings",
        "output_tokens",
    }
)
_NUMBER = re.compile(r"pivotbench-[0-9a-f]{12}|\d+(\.\d+)?")
# Of a decision and a race, what no single speed decides.
_KEPT = {
    "decision.json": {"schema", "study", "winner", "eliminated", "launch_command", "classes"},
    "race": {"schema", "phase", "round", "evidence", "next", "ended", "base"},
}


def content(folder: Path) -> dict[str, Any]:
    """Return every file below ``folder`` by its name: JSON without what is a run's own, of others ``there``.

    Logs are left out: each launch has its own. A part of a file that a killed writer left would be seen.
    """
    found = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and "logs" not in p.parts):
        name = str(path.relative_to(folder))
        found[name] = "there"
        if path.suffix == ".json":
            value = json.loads(path.read_text())
            kept = _KEPT.get(path.name) or _KEPT.get(path.parent.name) or value.keys()
            found[name] = _plain({key: value[key] for key in kept & value.keys()})
    return found


def difference(one: Any, other: Any, where: str = "") -> str | None:
    """Return the first place where two contents differ, None where they are the same."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            if key not in one or key not in other:
                return f"{where}/{key}: only in {'the undisturbed run' if key in other else 'this one'}"
            if found := difference(one[key], other[key], f"{where}/{key}"):
                return found
        return None
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return difference(dict(enumerate(one)), dict(enumerate(other)), where)
    return None if one == other else f"{where}: {str(one)[:200]}, undisturbed {str(other)[:200]}"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items() if key not in _OWN}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool)):
        return "number"
    return _NUMBER.sub("*", value) if isinstance(value, str) else value

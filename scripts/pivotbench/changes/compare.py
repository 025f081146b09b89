"""compare.json: what changed between two folders of results, put together."""

from __future__ import annotations

from typing import Any

from pivotbench.changes.answers import answer_changes
from pivotbench.changes.changelog import changelog
from pivotbench.changes.folder import Key, Results
from pivotbench.changes.gate import gate
from pivotbench.changes.model import SCHEMA, validated
from pivotbench.changes.speed import load_verdicts, metric_verdicts
from pivotbench.changes.surroundings import environment_changes, flag_changes, study_changes
from pivotbench.changes.threats import threats
from pivotbench.charts.source import measured_on
from pivotbench.decision.statistics import geometric_mean


def compare_folders(old: Results, new: Results) -> dict[str, Any]:
    """Return compare.json as JSON values of the shape in changes.model."""
    speeds, winners = metric_verdicts(old, new)
    found: dict[str, Any] = {
        "schema": SCHEMA,
        "old": _folder(old),
        "new": _folder(new),
        "metric": new.decision["metric"],
        "statement": _statement(new.decision["metric"]["confidence"]),
        "winner": {"old": old.decision["winner"], "new": new.decision["winner"], "speed": winners},
        "together": _together(speeds),
        "speeds": speeds,
        "speeds_by_load": load_verdicts(old, new),
        "configurations": [_configuration(old, new, key) for key in sorted({*old.tried, *new.tried})],
        "answers": answer_changes(old, new),
        "environment": environment_changes(old, new),
        "study": study_changes(old, new),
    }
    found |= {"threats": threats(found)}
    return validated({**found, "changelog": changelog(found), "gate": gate(found)})


def _folder(results: Results) -> dict[str, Any]:
    told = {name: results.decision[name] for name in ("study", "winner", "launch_command")}
    return {"folder": str(results.path), **told, "measured": measured_on(results.cells) or None}


def _statement(confidence: float) -> str:
    return (
        f"All verdicts on the metric hold together with {100 * confidence:g} % confidence, those by workload "
        "and concurrency as a family of their own, if the rounds and launches of each folder spread about a "
        "level that stayed. The two folders were not measured in the same rounds: what else changed between "
        "them, the machine's own speed included, cannot be taken out and is part of every ratio. To tell a "
        "version or a flag from the machine, run both in one study."
    )


def _together(speeds: list[dict[str, Any]]) -> dict[str, Any] | None:
    ratios = [row["ratio"] for row in speeds if row["verdict"] != "not_comparable"]
    if len(ratios) < 2:
        return None
    return {
        "configurations": len(ratios),
        "ratio": geometric_mean(ratios),
        "lowest": min(ratios),
        "highest": max(ratios),
    }


def _configuration(old: Results, new: Results, key: Key) -> dict[str, Any]:
    before, after = _outcome(old, key), _outcome(new, key)
    requested, effective = flag_changes(old, new, key)
    return {
        "phase": key[0],
        "configuration": key[1],
        "fate": _FATE_OF_STATES[before["state"], after["state"]],
        "old": before,
        "new": after,
        "requested": requested,
        "effective": effective,
    }


_FATE_OF_STATES = {
    ("works", "works"): "works",
    ("works", "eliminated"): "broke",
    ("eliminated", "works"): "mended",
    ("eliminated", "eliminated"): "still_broken",
    ("absent", "works"): "appeared",
    ("absent", "eliminated"): "appeared",
    ("works", "absent"): "vanished",
    ("eliminated", "absent"): "vanished",
}


def _outcome(results: Results, key: Key) -> dict[str, Any]:
    out = results.eliminated.get(key)
    if out is not None:
        return {"state": "eliminated", "code": out["code"], "reason": out["reason"]}
    return {"state": "works" if results.works(key) else "absent", "code": None, "reason": None}

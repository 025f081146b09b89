"""What differs around two folders' figures: machine and software, the study, each configuration's flags."""

from __future__ import annotations

from typing import Any

from pivotbench.changes.folder import Key, Results
from pivotbench.changes.work import differing, work_sent
from pivotbench.engines import spelling_of
from pivotbench.evidence import CellFiles
from pivotbench.settings import flat, unasked_differences
from pivotbench.workloads import load_in_words

ENVIRONMENT = (
    "engine",
    "engine_version",
    "image",
    "driver",
    "cpu_model",
    "cores",
    "host",
    "system",
    "model_revision",
)
DURATIONS = ("endpoint", "seconds", "windows", "min_requests")
Difference = dict[str, Any]


def environment_changes(old: Results, new: Results) -> list[Difference]:
    """Return what differs in engine, packages, driver, GPUs, processor, host, system and model.

    Each of a folder's values counts, also where its cells ran in several environments. What one of the
    folders does not tell is no difference.
    """
    before, after = (_environment(each) for each in (old, new))
    return [
        _difference(name, ", ".join(before[name]), ", ".join(after[name]))
        for name in before
        if name in after and before[name] != after[name]
    ]


def study_changes(old: Results, new: Results) -> list[Difference]:
    """Return what differs in the study: name, margin, confidence, workloads, durations, smoke prompts."""
    before, after = (_study(each) for each in (old, new))
    found = [
        _difference(name, before.get(name), after.get(name))
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    ]
    works = [work_sent(each.cells) for each in (old, new)]
    for name in sorted(works[0].keys() & works[1].keys()):
        for setting, was, now in differing(works[0][name], works[1][name]):
            found.append(_difference(f"{name}: {setting}", was, now))
    return found


def flag_changes(old: Results, new: Results, key: Key) -> tuple[list[str], list[str]]:
    """Return, each as ``name: old | new``, the flags asked for and the settings in effect that differ.

    The latter are those that nobody asked for, of servers that were measured; settings that only one of the
    folders reports are left out.
    """
    before, after = _last(old.own(key)), _last(new.own(key))
    if before is None or after is None:
        return [], []
    asked = [
        f"{name}: {before.requested.get(name, 'not set')} | {after.requested.get(name, 'not set')}"
        for name in sorted(before.requested.keys() | after.requested.keys())
        if before.requested.get(name) != after.requested.get(name)
    ]
    spelling = spelling_of(new.decision["engine"])
    settings = (flat(before.effective), flat(after.effective))
    return asked, list(unasked_differences(spelling, (before.requested, after.requested), settings))


def _last(cells: list[CellFiles]) -> CellFiles | None:
    """The last cell that was measured, or else the last that was launched."""
    return next(
        iter([*(c for c in reversed(cells) if c.measured), *(c for c in reversed(cells) if c.launch)]), None
    )


def _environment(results: Results) -> dict[str, list[str]]:
    # By its name: where the files of a model lie differs from machine to machine.
    found: dict[str, set[str]] = {"model": {results.decision["model"]}}
    for environment in (cell.environment for cell in results.cells):
        told = {name: environment.get(name) for name in ENVIRONMENT}
        told |= {f"package {name}": version for name, version in (environment.get("packages") or {}).items()}
        gpus = [str(gpu.get("name")) for gpu in environment.get("gpus") or ()]
        told["gpus"] = ", ".join(f"{gpus.count(name)}x {name}" for name in sorted(set(gpus))) or None
        told["gpu uuids"] = (
            ", ".join(sorted(str(gpu.get("uuid")) for gpu in environment.get("gpus") or ())) or None
        )
        for name, value in told.items():
            if value is not None:
                found.setdefault(name.replace("_", " "), set()).add(str(value))
    return {name: sorted(values) for name, values in found.items()}


def _study(results: Results) -> dict[str, str]:
    decision = results.decision
    told = {
        "study": str(decision["study"]),
        "margin": f"{100 * decision['metric']['margin']:g} %",
        "confidence": f"{100 * decision['metric']['confidence']:g} %",
        "workloads": ", ".join(sorted({run for cell in results.cells for run in _loads(cell)})),
    }
    for cell in results.cells:
        asked = (cell.throughput or {}).get("asked") or {}
        told |= {
            name.replace("_", " "): str(asked[name]) for name in DURATIONS if asked.get(name) is not None
        }
        if cell.smoke is not None and cell.smoke["status"] == "ok":
            told["smoke prompts"] = " / ".join(prompt["ask"] for prompt in cell.smoke["prompts"])
            told["continuations"] = ", ".join(each["id"] for each in cell.smoke.get("continuations") or ())
    return told


def _loads(cell: CellFiles) -> list[str]:
    return [load_in_words(run) for run in (cell.throughput or {}).get("runs") or []]


def _difference(what: str, old: str | None, new: str | None) -> Difference:
    return {"what": what, "old": old, "new": new}

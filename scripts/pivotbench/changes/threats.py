"""Why what a comparison says may have another cause, or be no change: each threat has one wording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from pivotbench.figures import names, percent

Row = Mapping[str, Any]


class Threat(Enum):
    """The known threats; the value is the wording."""

    OTHER_HOST = (
        "the folders were measured on different hosts ({old} | {new}): part of every ratio may be theirs"
    )
    OTHER_HARDWARE = "the hardware is another ({what}): whatever else changed cannot be told from it"
    SEVERAL_CAUSES = "{number} things changed in software and system ({what}), and no ratio tells them apart"
    TOGETHER = (
        "all {number} configurations moved the same way, {low} to {high}: what changed for all of them, the "
        "machine included, may be the cause"
    )
    OTHER_TIME = (
        "nothing that both recorded differs in engine, system or machine, so a change may be the machine's "
        "own speed, which no interval knows"
    )
    FEW_ROUNDS = "{names} ran in fewer than two rounds of a folder, which decide nothing"
    CONDITIONS = "the hardware did otherwise in {names}, e.g. {example}"
    OTHER_WORK = "other work was sent to {names}: {example}"
    SETTINGS = "settings that nobody asked for differ in {names}, e.g. {example}"


HARDWARE = ("gpus", "cpu model", "cores")
# They name a machine or what stands on it, not what was upgraded.
PLACES = ("host", "gpu uuids", *HARDWARE)


def threats(comparison: Row) -> list[dict[str, str]]:
    """Return the threats that compare.json itself shows, each with its code and message."""
    differs = {row["what"]: row for row in comparison["environment"]}
    speeds, together = comparison["speeds"], comparison["together"]
    found: list[dict[str, str]] = []
    if "host" in differs:
        host = differs["host"]
        found.append(_threat(Threat.OTHER_HOST, old=host["old"], new=host["new"]))
    if hardware := [name for name in HARDWARE if name in differs]:
        found.append(_threat(Threat.OTHER_HARDWARE, what=names(hardware)))
    upgraded = [name for name in differs if name not in PLACES and not _engines_own(name, differs)]
    if len(upgraded) > 1:
        found.append(_threat(Threat.SEVERAL_CAUSES, number=len(upgraded), what=names(upgraded)))
    moved = [row for row in speeds if row["verdict"] in ("faster", "slower")]
    if moved and together and (together["lowest"] > 1 or together["highest"] < 1):
        low, high = (percent(together[end] - 1, signed=True) for end in ("lowest", "highest"))
        found.append(_threat(Threat.TOGETHER, number=together["configurations"], low=low, high=high))
    asked = any(row["requested"] for row in comparison["configurations"])
    if moved and not differs and not asked:
        found.append(_threat(Threat.OTHER_TIME))
    if few := [r["configuration"] for r in speeds if min(r["old_rounds"], r["new_rounds"]) < 2]:
        found.append(_threat(Threat.FEW_ROUNDS, names=names(few)))
    found += _of_rows(Threat.CONDITIONS, [(r, r["confounders"]) for r in speeds])
    not_alike = [(r, [r["reason"]]) for r in speeds if r["verdict"] == "not_comparable" and r["reason"]]
    found += _of_rows(Threat.OTHER_WORK, not_alike)
    found += _of_rows(Threat.SETTINGS, [(row, row["effective"]) for row in comparison["configurations"]])
    return found


def _engines_own(name: str, differs: Mapping[str, Row]) -> bool:
    """Whether this is the engine's own package, whose version is the engine's: one change, told twice."""
    engine, row = differs.get("engine version"), differs[name]
    same = engine is not None and (engine["old"], engine["new"]) == (row["old"], row["new"])
    return same and name.startswith("package ")


def _of_rows(threat: Threat, rows: Sequence[tuple[Row, Sequence[str]]]) -> list[dict[str, str]]:
    """The threat with all whom it names, and one example of what was seen."""
    told = [(row["configuration"], reasons) for row, reasons in rows if reasons]
    if not told:
        return []
    who = names(list(dict.fromkeys(name for name, _ in told)))
    return [_threat(threat, names=who, example=told[0][1][0])]


def _threat(threat: Threat, **details: Any) -> dict[str, str]:
    return {"code": threat.name.lower(), "message": threat.value.format(**details)}

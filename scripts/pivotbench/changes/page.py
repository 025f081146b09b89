"""report.html of a comparison: compare.json on one page, in the look of a study's report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pivotbench.changes.changelog import flag_groups
from pivotbench.changes.story import facts, notes, story
from pivotbench.changes.summary import HEADINGS
from pivotbench.charts.changes import change_charts
from pivotbench.charts.field import plain_name
from pivotbench.charts.spec import specifications
from pivotbench.figures import percent_interval
from pivotbench.files import write_text
from pivotbench.report.shell import page

Row = Mapping[str, Any]
PARTS = (
    (("speed", "Speed"), ("loads", "By load"), ("outcomes", "What works"), ("answers", "Answers")),
    (("flags", "Flags"), ("environment", "Environment"), ("study", "Study")),
    (("threats", "Threats"), ("changelog", "Changelog")),
)
MADE_OF = (
    "from two folders of results, neither of which it touched; the same for programs is in `compare.json`."
)
FATE_LABELS = {
    "broke": "broke",
    "mended": "mended",
    "still_broken": "still out",
    "appeared": "new",
    "vanished": "gone",
    "works": "works",
}
ANSWERS = ("disagree", "changed", "unknown", "same")


def render(comparison: Row) -> str:
    """Return compare.json as a page of its own; see shell.page."""
    old, new = comparison["old"], comparison["new"]
    return page(
        story=story(comparison),
        facts=facts(comparison),
        subject=(f"{old['folder']} → {new['folder']}", _measured(old, new)),
        command=new["launch_command"],
        sections="changes",
        parts=PARTS,
        charts=specifications(change_charts(comparison)),
        names=list(dict.fromkeys(plain_name(row["configuration"]) for row in comparison["configurations"])),
        elsewhere="the tables hold their figures",
        made_of=MADE_OF,
        comparison=comparison,
        fates=FATE_LABELS,
        interval=percent_interval,
        notes=notes,
        answers=sorted(comparison["answers"], key=lambda row: ANSWERS.index(row["verdict"])),
        outcomes=_outcomes(comparison["configurations"]),
        speeds=sorted(comparison["speeds"], key=lambda row: -row["ratio"]),
        by_load=_by_load(comparison["speeds_by_load"]),
        flags=list(flag_groups(comparison["configurations"])),
        changelog=[
            (heading, lines)
            for heading, kinds in {"Winner": ("winner",), **HEADINGS}.items()
            if (lines := [row["line"] for row in comparison["changelog"] if row["kind"] in kinds])
        ],
    )


def write_page(path: Path, comparison: Row) -> None:
    """Write the page whole or not at all; see render."""
    write_text(path, render(comparison))


def _measured(old: Row, new: Row) -> str:
    return " → ".join(dict.fromkeys(filter(None, (old["measured"], new["measured"]))))


def _outcomes(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """What works, by phase: what changed first."""
    order = list(FATE_LABELS)
    found: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row["phase"], order.index(row["fate"]), row["configuration"])):
        found.setdefault(row["phase"], []).append(row)
    return found


def _by_load(rows: Sequence[Row]) -> list[tuple[tuple[str, int], list[Row]]]:
    groups: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["workload"], row["concurrency"]), []).append(row)
    return [(load, sorted(each, key=lambda row: -row["ratio"])) for load, each in groups.items()]

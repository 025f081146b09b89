"""How the answers of configurations agree with the reference's, for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pivotbench.figures import NO_BREAK, count, names, percent

AGREEING = ("reference", "agrees", "same text")


@dataclass(frozen=True)
class AnswerRow:
    """One configuration's answers; ``note`` is one plain sentence more, where there is something to say."""

    configuration: str
    same: str
    departures: str
    shared: str
    distance: str
    answered: str
    repeats: str
    relaunches: str
    verdict: str
    note: str


@dataclass(frozen=True)
class AnswerTable:
    """The answers of one phase: whom they are held against, what was set aside, and a row for each."""

    phase: str
    statement: str
    aside: str
    bound: str
    rows: tuple[AnswerRow, ...]

    @property
    def attention(self) -> bool:
        """Whether anybody does other than agree."""
        return any(row.verdict not in AGREEING for row in self.rows)

    @property
    def agreement(self) -> str:
        """How many agree with the reference, and who does not; empty where nobody else answered."""
        others = [row for row in self.rows if row.verdict != "reference"]
        odd = [f"{row.configuration} ({row.verdict})" for row in others if row.verdict not in AGREEING]
        if not others:
            return ""
        if odd:
            return f"{len(others) - len(odd)} of {count(len(others), 'other')} agree; not so {names(odd)}."
        return {1: "The other agrees.", 2: "Both others agree."}.get(
            len(others), f"All {len(others)} others agree."
        )


def answer_tables(decision: Mapping[str, Any]) -> list[AnswerTable]:
    """Return a table for each phase in which anybody answered."""
    return [_table(decision, part) for part in decision["agreement"]]


def _table(decision: Mapping[str, Any], part: Mapping[str, Any]) -> AnswerTable:
    out = {e["configuration"]: e for e in decision["eliminated"] if e["phase"] == part["phase"]}
    aside = part["set_aside"] if part["judged"] else []
    return AnswerTable(
        phase=part["phase"],
        statement=part["statement"],
        aside=f"Set aside: {names([f'“{ask}”' for ask in aside], 4)}." if aside else "",
        bound=f"bound {part['bound_nats']:g}",
        rows=tuple(_row(part, row, out.get(row["configuration"])) for row in part["configurations"]),
    )


def _row(part: Mapping[str, Any], row: Mapping[str, Any], out: Mapping[str, Any] | None) -> AnswerRow:
    reference = row["configuration"] == part["reference"]
    shared = row["shortest_common_prefix"]
    text = row["greedy_text"]
    note = ""
    if out is not None:
        note = out["reason"]
    elif text is not None and text["verdict"] != "same":
        note = text["why"]
    elif row["excused"]:
        note = f"fails {row['excused'][0]!r} after a near tie, which is excused"
    return AnswerRow(
        configuration=row["configuration"],
        same="–" if reference else f"{row['equal']} of {row['prompts']}",
        departures="–" if reference else _departures(row["departures"]),
        shared="–" if reference or shared is None else f"{shared}{NO_BREAK}{row['prefix_unit']}",
        distance="–" if reference else _nats(row["distance_nats"]),
        answered="–" if reference else _nats(row["answer_distance_nats"]),
        repeats="–" if row["repeatability"] is None else percent(row["repeatability"]),
        relaunches=f"{row['steady']} of {part['prompts']}",
        verdict=_verdict(part, row, reference, out),
        note=note,
    )


def _verdict(
    part: Mapping[str, Any], row: Mapping[str, Any], reference: bool, out: Mapping[str, Any] | None
) -> str:
    if out is not None:
        return str(out["code"]).replace("_", " ")
    if reference:
        return "reference"
    if not part["judged"]:
        return "not judged"
    if row["greedy_text"] is not None:
        return {"same": "same text", "changed": "text changed", "unknown": "text unknown"}[
            row["greedy_text"]["verdict"]
        ]
    return "agrees"


def _departures(kinds: Mapping[str, int]) -> str:
    words = {"near_tie": count(kinds["near_tie"], "near tie"), "clear": f"{kinds['clear']} clear"}
    words["unknown"] = f"{kinds['unknown']} unknown"
    return ", ".join(words[kind] for kind in words if kinds[kind]) or "none"


def _nats(value: float | None) -> str:
    if value is None:
        return "not told"
    return f"{value:.3f}" if value < 10 else f"{value:.0f}"

"""The report's other tables: ranking, speculation, flags, environment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pivotbench.charts.field import Field, fields
from pivotbench.decision.comparison import UNSETTLED
from pivotbench.decision.loads.words import largest_load_words
from pivotbench.evidence import CellFiles
from pivotbench.figures import count, number, percent, percent_interval


@dataclass(frozen=True)
class RankRow:
    """One row of the ranking table."""

    configuration: str
    mean: str
    interval: str
    rounds: int
    against: str
    verdict: str
    note: str
    held_against: str


def ranking_rows(field: Field, metric: Mapping[str, Any]) -> list[RankRow]:
    """Return a phase's ranking with each configuration's distance from the best by the ``metric``."""
    rows = []
    for row in field.ranking:
        name = row["configuration"]
        compared = field.others.get(name, {})
        interval = compared.get("ci")
        distance = ""
        if compared.get("ratio"):
            distance = percent(compared["ratio"] - 1, signed=True)
            if interval:
                distance += f" ({percent_interval(interval)})"
        rows.append(
            RankRow(
                configuration=name,
                mean=f"{'at least ' if row['at_least'] else ''}{number(row['mean_tok_s'])}",
                interval=f"{number(row['ci'][0])} to {number(row['ci'][1])}" if row["ci"] else "",
                rounds=row["rounds"],
                against=distance,
                verdict=field.standing
                if name == field.best
                else str(compared.get("verdict", "")).replace("_", " "),
                note="; ".join(filter(None, [largest_load_words(row, metric), rank_note(compared)])),
                held_against=field.best,
            )
        )
    return rows


def rank_note(compared: Mapping[str, Any]) -> str:
    """Return why a comparison is open, and how many rounds would likely close it."""
    notes = [compared["reason"]] if compared.get("reason") not in (None, UNSETTLED) else []
    if compared.get("rounds_needed"):
        notes.append(f"about {count(compared['rounds_needed'], 'more round')} would likely tell")
    return "; ".join(notes)


Load = tuple[str, int, str]


# The speed-up and its interval, which have columns of their own.
NUMBERS_FIRST = re.compile(r"^[\d.]+ times the baseline's speed(?: \([^)]*\))?; ")


Group = tuple[Load, list[Mapping[str, Any]]]


@dataclass(frozen=True)
class SpeculationTables:
    """The verdicts of speculation by (workload, concurrency, evidence): loads of the metric, and others."""

    deciding: list[Group]
    others: list[Group]


def speculation_tables(decision: Mapping[str, Any]) -> SpeculationTables:
    """Return the verdicts; in each group the largest speed-up first.

    ``reason`` is ``why`` without what other columns say.
    """
    groups: dict[Load, list[Mapping[str, Any]]] = {}
    for row in decision["speculation"]:
        why = NUMBERS_FIRST.sub("", row["why"].removeprefix(f"{row['verdict']}: "))
        told = {**row, "reason": why.removeprefix(f"{UNSETTLED}; ")}
        groups.setdefault((row["workload"], row["concurrency"], row["evidence"]), []).append(told)
    metric = decision["metric"]

    def decides(load: Load) -> bool:
        return load[0] in metric["workloads"] and metric["concurrency"] in (None, load[1])

    ordered = [
        (load, sorted(groups[load], key=lambda row: -(row["speedup"] or 0))) for load in sorted(groups)
    ]
    return SpeculationTables(
        deciding=[group for group in ordered if decides(group[0])],
        others=[group for group in ordered if not decides(group[0])],
    )


@dataclass(frozen=True)
class Flags:
    """What was asked of a configuration, and what was in effect without being asked for."""

    configuration: str
    asked: tuple[str, ...]
    overridden: tuple[str, ...]
    unasked: tuple[str, ...]


def flag_rows(decision: Mapping[str, Any], cells: Iterable[CellFiles]) -> list[Flags]:
    """Return, for each configuration that launched, its own flags and where the server did otherwise."""
    latest: dict[tuple[str, str], CellFiles] = {}
    for cell in cells:
        if cell.requested:
            latest[cell.phase, cell.configuration] = cell
    shared = _shared([cell.requested for cell in latest.values()])
    builds = {key: _build(cell.environment) for key, cell in latest.items()}
    several = len(set(builds.values())) > 1
    confounders: dict[tuple[str, str], list[str]] = {}
    for phase, field in fields(decision).items():
        for name, row in field.others.items():
            confounders[phase, name] = row.get("confounders") or []
    rows = []
    for key, cell in latest.items():
        launch = cell.launch or {}
        overrides = launch.get("overrides") or []
        rows.append(
            Flags(
                configuration=cell.configuration,
                asked=(
                    *((builds[key],) if several else ()),
                    *(f"{k} {_value(v)}" for k, v in sorted(cell.requested.items()) if k not in shared),
                    *(f"{d['flag']} is deprecated: use {d['use']}" for d in launch.get("deprecated") or []),
                ),
                overridden=tuple(dict.fromkeys(filter(None, map(_override, overrides)))),
                unasked=tuple(confounders.get(key, ())),
            )
        )
    return rows


def _override(row: Mapping[str, Any]) -> str | None:
    """Return an override for people: of what was asked, or in the log's words; None of a default."""
    where = f" (rank {', '.join(map(str, row['ranks']))})" if row.get("ranks") else ""
    if row["flag"] is None:
        return str(row["effective"])
    if row.get("requested") is None:
        return None
    return f"{row['flag']}: {_value(row['requested'])} → {_value(row.get('effective'))}{where}"


def _build(environment: Mapping[str, Any]) -> str:
    return f"{environment.get('engine')} {environment.get('engine_version') or 'of unknown version'}"


def _shared(requests: Sequence[Mapping[str, Any]]) -> set[str]:
    first = requests[0] if requests else {}
    return {k for k, v in first.items() if len(requests) > 1 and all(r.get(k) == v for r in requests)}


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def environment_rows(environment: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the environment as names and values for people; what is not known is left out."""
    rows = []
    for key, value in environment.items():
        if value in (None, "", [], {}):
            continue
        if key == "gpus":
            models = [gpu.get("name", "GPU") for gpu in value]
            text = ", ".join(f"{models.count(model)} × {model}" for model in dict.fromkeys(models))
        elif isinstance(value, Mapping):
            text = ", ".join(f"{k} {v}" for k, v in sorted(value.items()))
        else:
            text = _value(value)
        rows.append((str(key).replace("_", " ").replace("gpus", "GPUs").replace("cpu", "CPU"), text))
    return rows

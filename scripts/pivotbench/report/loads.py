"""What to serve by load and what no configuration beats, as rows of the report's tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pivotbench.decision.loads.words import crossing_words, place_words, standing_words
from pivotbench.figures import number, seconds


@dataclass(frozen=True)
class ServedRow:
    """What to serve at one load; ``decides``: this load is the study's metric."""

    load: str
    configuration: str
    mean: str
    standing: str
    note: str
    decides: bool


@dataclass(frozen=True)
class Regions:
    """What to serve by load; no rows where only one load was measured."""

    rows: tuple[ServedRow, ...]
    changes: tuple[str, ...]
    statement: str


@dataclass(frozen=True)
class ParetoRow:
    """One operating point of the Pareto set."""

    workload: str
    configuration: str
    concurrency: int
    tok_s: str
    per_gpu: str
    per_user: str
    ttft_p99: str


def regions_table(decision: Mapping[str, Any]) -> Regions:
    """Return what to serve by load, and where two configurations change places."""
    found = decision["regions"]
    rows = [
        ServedRow(
            place_words(row),
            row["configuration"],
            number(row["mean_tok_s"]),
            row["standing"],
            _rivals(row),
            row["decides"],
        )
        for row in found["best"]
    ]
    changes = tuple(f"{crossing_words(row)}." for row in found["crossings"])
    return Regions(tuple(rows) if len(rows) > 1 else (), changes, found["statement"])


def _rivals(row: Mapping[str, Any]) -> str:
    if row["standing"] not in ("equivalent", "undecided"):
        return ""
    return standing_words(row).removeprefix("undecided, ").removeprefix("equivalent ")


def pareto_rows(decision: Mapping[str, Any]) -> list[ParetoRow]:
    """Return the Pareto set of each workload."""
    return [
        ParetoRow(
            row["workload"],
            row["configuration"],
            row["concurrency"],
            number(row["output_tok_s"]),
            number(row["output_tok_s_per_gpu"]) if row["output_tok_s_per_gpu"] else "",
            number(row["tok_s_per_user"]),
            seconds(row["ttft_p99_seconds"]) if row["ttft_p99_seconds"] else "",
        )
        for row in decision["pareto"]
    ]

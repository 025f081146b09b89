"""What became of a cell, in a line: its speeds, or where it failed, why and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import mean
from typing import Any

from pivotbench.cells import Cell
from pivotbench.evidence import read_cell
from pivotbench.figures import number
from pivotbench.files import read_json
from pivotbench.results import STAGES, Stage

# Speeds that one line names; a study may have dozens of loads.
NAMED = 4


@dataclass(frozen=True)
class Outcome:
    """How a cell ended: ``words`` say all, ``brief`` what stands beside a log of the stages' own words."""

    failed: bool
    words: str
    brief: str


def outcome(cell: Cell) -> Outcome:
    """Return what a cell's files tell by now."""
    files = read_cell(cell.folder)
    if (failure := files.failure) is not None:
        stage, reason = failure
        remedy = f" {reason.remedy}" if reason.remedy else ""
        words = _printable(f"{reason.code} at {stage}: {reason.message.rstrip('.')}.{remedy}")
        return Outcome(True, words, f"{reason.code} at {stage}")
    if files.measured and files.throughput is not None:
        speeds = _speeds(files.throughput["runs"])
        return Outcome(False, speeds, speeds)
    there = [stage for stage in STAGES if files.stage(stage) is not None]
    done = f"{there[-1]} ok" if there else "nothing ran"
    return Outcome(False, done, done)


def status(cell: Cell, stage: Stage) -> str:
    """Return how a stage ended: ok, failed or skipped; "" where its file does not tell."""
    try:
        return str(read_json(cell.file(stage))["status"])
    except (OSError, ValueError, TypeError, KeyError):
        return ""


def _speeds(runs: list[dict[str, Any]]) -> str:
    """Return ``code 71.6 tok/s at 1, 400 at 8; prose 70.2 at 1``."""
    loads: dict[str, list[str]] = {}
    for run in [run for run in runs if run["windows"]][:NAMED]:
        speed = number(mean(window["output_tok_s"] for window in run["windows"]))
        unit = "" if loads else " tok/s"
        load = run["concurrency"] or f"{run['rate_per_second']:g} requests/s"
        loads.setdefault(run["workload"], []).append(f"{speed}{unit} at {load}")
    said = "; ".join(f"{workload} {', '.join(speeds)}" for workload, speeds in loads.items())
    more = max(0, len(runs) - NAMED)
    return f"{said}{f' and {more} more' if more else ''}" or "nothing measured"


def _printable(text: str) -> str:
    """Return ``text`` without what would steer a terminal: logs and models write such things."""
    return "".join(c if c.isprintable() else " " for c in text)

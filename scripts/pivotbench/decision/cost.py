"""What the evidence cost in launches and seconds, and whether the study's budget allows another round."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from statistics import mean
from typing import Any

from pivotbench.evidence import CellFiles
from pivotbench.results import STAGES, Stage


def cost(cells: Iterable[CellFiles], gpus: int, rounds_max: int) -> dict[str, Any]:
    """Return gpu_seconds, server_seconds and launches over the cells, failures included; and of a full sweep.

    Seconds are the durations of stages that ran; those between stages of one cell are not counted. Each of
    a server's ``gpus`` counts; on the CPU gpu_seconds is 0. The full sweep runs every configuration, those
    that fail too, in all ``rounds_max`` rounds at the mean duration of its own cells: an estimate.
    """
    cells = list(cells)
    by_configuration: dict[tuple[str, str], list[float]] = {}
    for cell in cells:
        by_configuration.setdefault((cell.phase, cell.configuration), []).append(server_seconds(cell))
    spent = math.fsum(map(math.fsum, by_configuration.values()))
    sweep = rounds_max * math.fsum(mean(seconds) for seconds in by_configuration.values())
    return {
        "gpu_seconds": round(spent * gpus, 1),
        "server_seconds": round(spent, 1),
        "launches": len({launch for cell in cells for launch in _launches(cell)}),
        "full_sweep_gpu_seconds": round(sweep * gpus, 1),
        "full_sweep_server_seconds": round(sweep, 1),
    }


def server_seconds(cell: CellFiles) -> float:
    """Return how long the stages of a cell took that ran."""
    return math.fsum(_seconds(content["started"], content["ended"]) for _, content in _ran(cell))


def over_budget(
    gpu_hours: float | None, gpus: int, cells: Sequence[CellFiles], before: float, names: Iterable[str]
) -> str | None:
    """Return why another round of ``names`` would exceed the budget, or None.

    ``cells``: the phase's so far; ``before``: server-seconds of earlier phases. A configuration's next cell
    is taken to last as long as its own cells in the mean, or as all cells where it has none.
    """
    if gpu_hours is None or not cells:
        return None
    seconds = [server_seconds(cell) for cell in cells]
    spent = (before + math.fsum(seconds)) * gpus / 3600
    next_ = 0.0
    for name in names:
        own = [s for cell, s in zip(cells, seconds, strict=True) if cell.configuration == name]
        next_ += mean(own or seconds) * gpus / 3600
    if spent + next_ <= gpu_hours:
        return None
    spent_and_next = f"{spent:.2f} are spent and another round would take about {next_:.2f}"
    return f"budget of {gpu_hours:g} GPU-hours: {spent_and_next}"


def _launches(cell: CellFiles) -> Iterator[str]:
    for stage, content in _ran(cell):
        launch_id = (content.get("server") or {}).get("launch_id")
        if launch_id or stage == "launch":
            yield launch_id or f"{cell.phase}/{cell.configuration}/{cell.round}"


def _ran(cell: CellFiles) -> Iterator[tuple[Stage, dict[str, Any]]]:
    for stage in STAGES:
        content = cell.stage(stage)
        if content is not None and content["status"] != "skipped":
            yield stage, content


def _seconds(started: str, ended: str) -> float:
    return (datetime.fromisoformat(ended) - datetime.fromisoformat(started)).total_seconds()

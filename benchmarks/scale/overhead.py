"""What a stage costs over its server's own time: our start, the lease, the files; and Snakemake's job.

A stage lasts from the end of the one before it to its own end. The server's own time in it is known: until
it was ready; what its script takes to answer; from a load's first request to its last; until it was gone.
Ours is what the stage's command takes beyond that, run by itself; Snakemake's job comes on top.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd
from benchmarks.scale.campaign import inside
from benchmarks.scale.spent import spent

from pivotbench.campaign import Campaign
from pivotbench.cells import Cell
from pivotbench.files import read_json
from pivotbench.lease.processes import Identity
from pivotbench.results import STAGES, Stage
from pivotbench.stages.context import OWNER_VARIABLE
from pivotbench.study import load_study
from workflow.campaign import ROOT, Folder

PREFILL_SECONDS, TOKEN_SECONDS = 0.002, 0.01
NAMES = ("fa3", "triton", "flashinfer", "fa4")


@dataclass(frozen=True)
class Overhead:
    """A stage's medians over the server's own time, in seconds.

    ``wall_seconds`` and ``cpu_seconds`` of its command alone; ``job_wall_seconds`` as a job of Snakemake.
    """

    wall_seconds: float
    cpu_seconds: float
    job_wall_seconds: float


def overheads(path: Path) -> dict[Stage, Overhead]:
    """Run a few cells on the scripted server in a new folder, by Snakemake and without it."""
    folder = Folder.create(path)
    study = folder.study()
    del study["speculative"]
    study["serve"] = {"script-token-seconds": TOKEN_SECONDS, "script-prefill-seconds": PREFILL_SECONDS}
    study["backends"] = {name: {"attention-backend": name} for name in NAMES}
    folder.write(study)
    jobs = _jobs(folder)
    alone = _alone(folder)
    return {
        stage: Overhead(
            median(wall for wall, _ in alone[stage]), median(cpu for _, cpu in alone[stage]), jobs[stage]
        )
        for stage in STAGES
    }


def _jobs(folder: Folder) -> dict[Stage, float]:
    """Run round one by Snakemake. The first cell is left out: nothing comes before it."""
    targets = [f"results/small/backends/{name}/r1/teardown.json" for name in NAMES]
    spent(folder.command(*targets), folder.path, folder.environment())
    cells = sorted((_cell(folder.cell(name)) for name in NAMES), key=lambda cell: _ended(cell["launch"]))
    found: dict[Stage, list[float]] = {stage: [] for stage in STAGES}
    for before, cell in pairwise(cells):
        last = _ended(before[STAGES[-1]])
        for stage in STAGES:
            ended = _ended(cell[stage])
            found[stage].append(ended - last - _own(stage, cell))
            last = ended
    return {stage: median(values) for stage, values in found.items()}


def _alone(folder: Folder) -> dict[Stage, list[tuple[float, float]]]:
    """Run the commands of round two, one after the other; return (wall less the server's own, processor)."""
    found: dict[Stage, list[tuple[float, float]]] = {stage: [] for stage in STAGES}
    with inside(folder):
        campaign = Campaign(study=load_study(Path("study.yaml")), root=ROOT)
        os.environ[OWNER_VARIABLE] = str(Identity.own())
        for name in NAMES:
            cell = campaign.cell("backends", name, 2)
            costs = {stage: spent(_command(campaign, stage, cell), Path(), os.environ) for stage in STAGES}
            told = _cell(cell.folder)
            for stage, cost in costs.items():
                found[stage].append((cost.wall_seconds - _own(stage, told), cost.cpu_seconds))
    return found


def _command(campaign: Campaign, stage: Stage, cell: Cell) -> list[str]:
    script = str(ROOT / "scripts" / f"{stage}.py")
    asked = ("--cell", campaign.asked(stage, cell), "--host", campaign.host)
    return [sys.executable, script, *asked, "--output", str(cell.file(stage))]


def _cell(folder: Path) -> dict[str, Any]:
    cell = {stage: read_json(folder / f"{stage}.json") for stage in STAGES}
    wrong = [stage for stage in STAGES if cell[stage]["status"] != "ok"]
    if wrong:
        raise RuntimeError(f"{folder}: {wrong[0]} is not ok: {cell[wrong[0]]['reason']}")
    return cell | {"requests": pd.read_parquet(folder / "requests.parquet")}


def _ended(stage: dict[str, Any]) -> float:
    return datetime.fromisoformat(stage["ended"]).timestamp()


def _own(stage: Stage, cell: dict[str, Any]) -> float:
    """Return the server's own time in a stage, in seconds."""
    if stage == "launch":
        return float(cell[stage]["ready_seconds"])
    if stage == "teardown":
        return float(cell[stage]["seconds"])
    if stage == "smoke":
        answers = [answer for prompt in cell[stage]["prompts"] for answer in prompt["answers"]]
        return sum(PREFILL_SECONDS + TOKEN_SECONDS * answer["output_tokens"] for answer in answers)
    loads = cell["requests"].groupby(["workload", "concurrency"])
    return float((loads["end_seconds"].max() - loads["sent_seconds"].min()).sum())

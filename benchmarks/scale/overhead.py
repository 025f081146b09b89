"""What a stage costs over its server's own time: Snakemake's job, our imports, the lease, the files.

A stage lasts from the end of the one before it to its own end. The server's own time in it is known: until
it was ready; what its script takes to answer; from a load's first request to its last; until it was gone.
"""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd
from benchmarks.scale.spent import spent

from pivotbench.files import read_json
from pivotbench.results import STAGES, Stage
from workflow.campaign import Folder

PREFILL_SECONDS, TOKEN_SECONDS = 0.002, 0.01
NAMES = ("fa3", "triton", "flashinfer", "fa4")


def overheads(path: Path) -> dict[Stage, float]:
    """Run a few cells on the scripted server in a new folder; return each stage's median overhead in seconds.

    The first cell is left out: nothing comes before it.
    """
    folder = Folder.create(path)
    study = folder.study()
    del study["speculative"]
    study["serve"] = {"script-token-seconds": TOKEN_SECONDS, "script-prefill-seconds": PREFILL_SECONDS}
    study["backends"] = {name: {"attention-backend": name} for name in NAMES}
    folder.write(study)
    targets = [f"results/small/backends/{name}/r1/teardown.json" for name in NAMES]
    spent(folder.command(*targets), folder.path, folder.environment())
    cells = [_cell(folder.cell(name)) for name in NAMES]
    cells.sort(key=lambda cell: _ended(cell["launch"]))
    found: dict[Stage, list[float]] = {stage: [] for stage in STAGES}
    for before, cell in pairwise(cells):
        last = _ended(before[STAGES[-1]])
        for stage in STAGES:
            ended = _ended(cell[stage])
            found[stage].append(ended - last - _own(stage, cell))
            last = ended
    return {stage: median(values) for stage, values in found.items()}


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

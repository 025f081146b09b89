"""A cell whose stages are run one by one, each by its own script."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

from faults.soak.study import soak_study, write_study
from pivotbench.campaign import Campaign
from pivotbench.cells import Cell
from pivotbench.lease.processes import Identity
from pivotbench.results import STAGES, Stage
from pivotbench.stages.context import OWNER_VARIABLE
from pivotbench.study import load_study

ROOT = Path(__file__).resolve().parents[2]


class OneCell:
    """The only cell of the soak's study, in the present folder; its servers have so many GPUs."""

    def __init__(self, folder: Path, gpus: int = 0) -> None:
        study = soak_study(folder)
        study["hosts"]["gpus"] = gpus
        self.campaign = Campaign(study=load_study(write_study(folder, study)), root=ROOT)
        self.cell = Cell("small", "backends", "good", 1)
        self.results = folder / self.cell.folder

    def run(self, stage: Stage, limit_bytes: int | None = None) -> subprocess.CompletedProcess[str]:
        """Run a stage; no file may grow beyond ``limit_bytes``."""

        def limit() -> None:
            if limit_bytes is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))

        asked = ("--cell", self.campaign.asked(stage, self.cell), "--host", self.campaign.host)
        return subprocess.run(
            [
                *(sys.executable, str(ROOT / "scripts" / f"{stage}.py"), *asked),
                *("--output", str(self.cell.file(stage))),
            ],
            env={**os.environ, OWNER_VARIABLE: str(Identity.own())},
            text=True,
            capture_output=True,
            timeout=120,
            check=False,
            preexec_fn=limit,
        )

    def run_all(self) -> None:
        """Run every stage in order; each has to leave its file."""
        for stage in STAGES:
            done = self.run(stage)
            assert done.returncode == 0, done.stderr

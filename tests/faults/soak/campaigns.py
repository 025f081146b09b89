"""Kill points through Snakemake: a run is killed somewhere, the next run of the same command ends it."""

from __future__ import annotations

import random
import shutil
import subprocess
import time
from pathlib import Path

from faults.soak.cell_run import due, until
from faults.soak.chain import LEAK_SECONDS, Chain, Kill
from faults.soak.files import content, difference
from faults.soak.processes import TARGETS, kill, leaks, parties
from faults.soak.study import soak_study, write_study
from pivotbench.cells import Cell
from pivotbench.lease.processes import Identity
from pivotbench.results import STAGES
from pivotbench.study import load_study
from workflow.campaign import Folder

TARGET = "results/small/backends/good/r1/teardown.json"


class CampaignSoak:
    """A folder of its own, in which Snakemake makes one cell from launch to teardown."""

    def __init__(self, path: Path) -> None:
        """Make the folder and run Snakemake undisturbed once."""
        write_study(path, soak_study(path))
        self.folder, self.locks = Folder(path), path / "locks"
        run = self.folder.snakemake(TARGET)
        assert run.code == 0, run.text
        self.undisturbed = content(self.folder.results)

    def chain(self, seed: str) -> Chain:
        """Kill one or two runs of the campaign in a row, let the next one end, and say what is wrong then."""
        draw, began, kills = random.Random(seed), time.monotonic(), []
        for name in ("results", ".snakemake"):
            shutil.rmtree(self.folder.path / name, ignore_errors=True)
        for _ in range(draw.choice((1, 2))):
            run, target = self.folder.start(TARGET), draw.choice(TARGETS)
            at = self._kill(run, target, draw)
            run.wait(timeout=240)
            if at is not None:
                kills.append(Kill(target, at))
        return Chain(seed, tuple(kills), self._resume(), time.monotonic() - began)

    def _kill(self, run: subprocess.Popen[str], target: str, draw: random.Random) -> str | None:
        """Kill the target some time into a drawn stage, or before the first; return where it was done."""
        wanted, seconds = draw.choice((None, *STAGES)), draw.uniform(0.0, 0.6)
        while run.poll() is None and wanted is not None:
            stage = stage_of(self.folder.path)
            if stage and stage[0] == wanted:
                break
            time.sleep(0.02)
        time.sleep(seconds)
        while run.poll() is None:
            stage = stage_of(self.folder.path)
            found = parties(self.locks) | {
                "run": [i for i in [Identity.of(run.pid)] if i],
                "stage": [stage[1]] if stage else [],
            }
            lists = [found[name] for name in target.split()]
            if (all(lists) or len(lists) > 3) and kill([one for those in lists for one in those]):
                return stage[0] if stage else "between"
            time.sleep(0.02)
        return None

    def _resume(self) -> str | None:
        run = self.folder.snakemake(TARGET)
        if run.code != 0:
            return f"the rerun exits {run.code}: {run.text[-1500:]}"
        study = load_study(self.folder.path / "study.yaml")
        if found := difference(content(self.folder.results), self.undisturbed):
            return f"other files: {found}"
        if left := due(study, Cell("small", "backends", "good", 1), self.folder.path):
            return f"after the rerun {', '.join(left)} is due"
        if not until(lambda: not leaks(self.locks), LEAK_SECONDS):
            return f"left behind: {', '.join(leaks(self.locks))}"
        return None


def stage_of(folder: Path) -> tuple[str, Identity] | None:
    """Return the stage that runs in a folder's campaign, and its process."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            here = (entry / "cwd").readlink() == folder
        except OSError:
            continue
        name = Path(words[1].decode()).stem if here and len(words) > 2 and words[2] == b"--cell" else None
        if name and (identity := Identity.of(int(entry.name))):
            return name, identity
    return None

"""Kill points through Snakemake: a run is killed somewhere, the next run of the same command ends it."""

from __future__ import annotations

import random
import shutil
import subprocess
import time
from pathlib import Path

from faults.soak.aims import Aim, Deck
from faults.soak.cell_run import due, until
from faults.soak.chain import LEAK_SECONDS, Chain, Kill
from faults.soak.files import content, difference
from faults.soak.held import Held
from faults.soak.processes import kill, leaks, parties
from faults.soak.study import soak_study, write_study
from pivotbench.cells import Cell
from pivotbench.lease.processes import Identity
from pivotbench.results import Stage
from pivotbench.study import load_study
from workflow.campaign import Folder

TARGET = "results/small/backends/good/r1/teardown.json"
# From Snakemake's start to its first stage, and what a stage takes at least.
START_SECONDS, STAGE_SECONDS = 3.0, 0.6


class CampaignSoak:
    """A folder of its own, in which Snakemake makes one cell from launch to teardown."""

    def __init__(self, path: Path, seed: str) -> None:
        """Make the folder and run Snakemake undisturbed once."""
        self.deck = Deck(seed)
        self.study, self.cell = (
            load_study(write_study(path, soak_study(path))),
            Cell("small", "backends", "good", 1),
        )
        self.folder = Folder(path)
        run = self.folder.snakemake(TARGET)
        assert run.code == 0, run.text
        self.undisturbed = content(self.folder.results)

    def chain(self, seed: str) -> Chain:
        """Kill one to three runs in a row, let the next one end, and say what is wrong then."""
        draw, began, kills, fault = random.Random(seed), time.monotonic(), [], None
        for name in ("results", ".snakemake"):
            shutil.rmtree(self.folder.path / name, ignore_errors=True)
        for _ in range(draw.choice((1, 2, 3))):
            if fault or not (pending := self._due()):
                break
            held, aim = Held(self.cell, pending, self.folder.path), self.deck.deal(pending)
            run = self.folder.start(TARGET)
            at = self._kill(run, aim, draw.random())
            run.wait(timeout=240)
            kills += [Kill(aim.target, at)] if at is not None else []
            fault = held.fault()
        return Chain(seed, tuple(kills), fault or self._resume(), time.monotonic() - began)

    def _kill(self, run: subprocess.Popen[str], aim: Aim, share: float) -> str | None:
        """Kill whom the aim names, ``share`` of the way through the moments it leaves open."""
        while run.poll() is None and aim.stage is not None:
            stage = stage_of(self.folder.path)
            if stage and stage[0] == aim.stage:
                break
            time.sleep(0.02)
        time.sleep(share * (START_SECONDS if aim.stage is None else 0.0 if aim.at_begin else STAGE_SECONDS))
        while run.poll() is None:
            stage = stage_of(self.folder.path)
            found = parties(self.folder.path) | {
                "run": [i for i in [Identity.of(run.pid)] if i],
                "stage": [stage[1]] if stage else [],
            }
            lists = [found[name] for name in aim.target.split()]
            if (all(lists) or len(lists) > 3) and kill([one for those in lists for one in those]):
                return stage[0] if stage else "between"
            time.sleep(0.02)
        return None

    def _resume(self) -> str | None:
        """Run the same command undisturbed; return what is wrong then."""
        held = Held(self.cell, self._due(), self.folder.path)
        run = self.folder.snakemake(TARGET)
        if run.code != 0:
            return f"the rerun exits {run.code}: {run.text[-1500:]}"
        if fault := held.fault():
            return fault
        if left := self._due():
            return f"after the rerun {', '.join(left)} is due"
        if found := difference(content(self.folder.results), self.undisturbed):
            return f"other files: {found}"
        if not until(lambda: not leaks(self.folder.path), LEAK_SECONDS):
            return f"left behind: {', '.join(leaks(self.folder.path))}"
        return None

    def _due(self) -> list[Stage]:
        return due(self.study, self.cell, self.folder.path)


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

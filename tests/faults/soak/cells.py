"""Kill points on supervisor and stages alone: a run of one cell is killed somewhere, the next one ends it."""

from __future__ import annotations

import os
import random
import shutil
import time
from pathlib import Path

from faults.soak.cell_run import CellRun, due, start, until
from faults.soak.chain import LEAK_SECONDS, Chain, Kill
from faults.soak.files import content, difference
from faults.soak.processes import TARGETS, kill, leaks, parties
from faults.soak.study import soak_study, write_study
from pivotbench.campaign import Campaign
from pivotbench.cells import Cell
from pivotbench.lease.processes import Identity
from pivotbench.results import STAGES
from pivotbench.stage_files import read_stage
from pivotbench.study import load_study

ROOT = Path(__file__).resolve().parents[3]


class CellSoak:
    """A folder of its own with one cell in it, run again and again."""

    def __init__(self, folder: Path) -> None:
        """Make the folder and run the cell undisturbed once, for its files and its duration."""
        os.environ["PIVOTBENCH_LOCKS"] = str(folder / "locks")
        os.environ["PIVOTBENCH_CACHE"] = str(folder / "cache")
        write_study(folder, soak_study(folder))
        os.chdir(folder)
        self.folder, self.locks, self.log = folder, folder / "locks", folder / "run.log"
        self.campaign = Campaign(study=load_study(Path("study.yaml")), root=ROOT)
        self.cell = Cell("small", "backends", "good", 1)
        began = time.monotonic()
        assert start(self.campaign, self.cell, self.log).wait() == 0, self.log.read_text()
        self.seconds = time.monotonic() - began
        self.undisturbed = content(self.cell.folder)

    def chain(self, seed: str) -> Chain:
        """Kill one to three runs of the cell in a row, let the next one end, and say what is wrong then."""
        draw, began, kills, fault = random.Random(seed), time.monotonic(), [], None
        shutil.rmtree(self.cell.folder, ignore_errors=True)
        self.log.unlink(missing_ok=True)
        for _ in range(draw.choice((1, 1, 2, 3))):
            run, target = start(self.campaign, self.cell, self.log), draw.choice(TARGETS)
            at = self._kill(run, target, draw)
            run.wait()
            if at is not None:
                kills.append(Kill(target, at))
            torn = [s for s in STAGES if self.cell.file(s).exists() and read_stage(self.cell.file(s)) is None]
            fault = fault or (f"torn: {', '.join(torn)}" if torn else None)
        fault = fault or self._resume()
        return Chain(seed, tuple(kills), fault, time.monotonic() - began)

    def _kill(self, run: CellRun, target: str, draw: random.Random) -> str | None:
        """Kill the target at a boundary between stages, or anywhere.

        Return at which stage, None where the target never lived.
        """
        if draw.random() < 0.4:
            stage, more = draw.choice(STAGES), draw.uniform(0.0, 0.03)
            while run.listen(60.0) and (run.stage is None or run.stage[0] != stage):
                pass
        else:
            more = draw.uniform(0.0, self.seconds)
        moment = time.monotonic() + more
        while run.listen(moment - time.monotonic()) and time.monotonic() < moment:
            pass
        while run.listen(0.0):
            if kill(self._victims(run, target)):
                return run.stage[0] if run.stage else "between"
        return None

    def _victims(self, run: CellRun, target: str) -> list[Identity]:
        found = parties(self.locks) | {"run": [run.process], "stage": [run.stage[1]] if run.stage else []}
        lists = [found[name] for name in target.split()]
        together = len(lists) < 4  # where everybody is killed, whoever is there
        return [] if together and not all(lists) else [victim for those in lists for victim in those]

    def _resume(self) -> str | None:
        """Run what is due; return what is wrong then."""
        kept = {s: self.cell.file(s).read_bytes() for s in STAGES if self.cell.file(s).exists()}
        pending = due(self.campaign.study, self.cell)
        code = start(self.campaign, self.cell, self.log).wait() if pending else 0
        if code != 0:
            return f"the rerun exits {code}: {self.log.read_text()[-600:]}"
        lost = [s for s, data in kept.items() if s not in pending and self.cell.file(s).read_bytes() != data]
        if lost:
            return f"{', '.join(lost)} held and was made again"
        if left := due(self.campaign.study, self.cell):
            return f"after the rerun {', '.join(left)} is due: {self.log.read_text()[-600:]}"
        if found := difference(content(self.cell.folder), self.undisturbed):
            return f"other files: {found}"
        if not until(lambda: not leaks(self.locks), LEAK_SECONDS):
            return f"left behind: {', '.join(leaks(self.locks))}"
        return None

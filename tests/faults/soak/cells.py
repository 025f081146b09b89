"""Kill points on supervisor and stages alone: a run of one cell is killed somewhere, the next one ends it."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import time
from pathlib import Path

from faults.soak.aims import Aim, Deck
from faults.soak.cell_run import CellRun, due, start, until
from faults.soak.chain import LEAK_SECONDS, Chain, Kill
from faults.soak.files import content, difference
from faults.soak.held import Held
from faults.soak.processes import kill, leaks, parties, temporary_folder
from faults.soak.study import soak_study, write_study
from pivotbench.campaign import Campaign
from pivotbench.cells import Cell
from pivotbench.lease.processes import Identity
from pivotbench.results import Stage
from pivotbench.study import load_study

ROOT = Path(__file__).resolve().parents[3]
BEGIN_SECONDS = 0.03
# In the other chains supervisors and guards start by an interpreter of their own, as ever.
FORKED_SHARE = 0.8


class CellSoak:
    """A folder of its own with one cell in it, run again and again."""

    def __init__(self, folder: Path, seed: str) -> None:
        """Make the folder and run the cell undisturbed once, for its files and how long each stage takes."""
        self.deck = Deck(seed)
        self.folder, self.log = folder, folder / "run.log"
        os.environ["PIVOTBENCH_LOCKS"] = str(folder / "locks")
        os.environ["PIVOTBENCH_CACHE"] = str(folder / "cache")
        os.environ["TMPDIR"] = tempfile.tempdir = str(temporary_folder(folder))
        temporary_folder(folder).mkdir()
        write_study(folder, soak_study(folder))
        os.chdir(folder)
        self.campaign = Campaign(study=load_study(Path("study.yaml")), root=ROOT)
        self.cell = Cell("small", "backends", "good", 1)
        self.seconds = self._undisturbed()
        self.undisturbed = content(self.cell.folder)

    def chain(self, seed: str) -> Chain:
        """Kill one to four runs of the cell in a row, let the next one end, and say what is wrong then."""
        draw, began, kills = random.Random(seed), time.monotonic(), []
        shutil.rmtree(self.cell.folder, ignore_errors=True)
        self.log.unlink(missing_ok=True)
        forked, fault = draw.random() < FORKED_SHARE, None
        for _ in range(draw.choice((1, 2, 3, 4))):
            if fault or not (pending := self._due()):
                break
            held, aim = Held(self.cell, pending), self.deck.deal(pending)
            run = start(self.campaign, self.cell, self.log, forked=forked)
            at = self._kill(run, aim, draw.random())
            run.wait()
            kills += [Kill(aim.target, at)] if at is not None else []
            fault = held.fault()
        return Chain(seed, tuple(kills), fault or self._resume(forked), time.monotonic() - began)

    def _undisturbed(self) -> dict[Stage, float]:
        run = start(self.campaign, self.cell, self.log, forked=False)
        begun: dict[Stage, float] = {}
        while run.listen(60.0):
            if run.stage is not None:
                begun.setdefault(run.stage[0], time.monotonic())
        assert run.code == 0, self.log.read_text()
        ends = [*list(begun.values())[1:], time.monotonic()]
        return {stage: end - begin for (stage, begin), end in zip(begun.items(), ends, strict=True)}

    def _kill(self, run: CellRun, aim: Aim, share: float) -> str | None:
        """Kill whom the aim names, ``share`` of the way through the moments it leaves open.

        Return at which stage, None where the target never lived.
        """
        while aim.stage and run.listen(60.0) and (run.stage is None or run.stage[0] != aim.stage):
            pass
        near = aim.at_begin or aim.stage is None
        moment = time.monotonic() + share * (BEGIN_SECONDS if near else self.seconds[aim.stage])
        while run.listen(moment - time.monotonic()) and time.monotonic() < moment:
            pass
        while run.listen(0.0):
            if kill(self._victims(run, aim.target)):
                return run.stage[0] if run.stage else "between"
            run.listen(0.02)
        return None

    def _victims(self, run: CellRun, target: str) -> list[Identity]:
        found = parties(self.folder) | {"run": [run.process], "stage": [run.stage[1]] if run.stage else []}
        lists = [found[name] for name in target.split()]
        together = len(lists) < 4  # where everybody is killed, whoever is there
        return [] if together and not all(lists) else [victim for those in lists for victim in those]

    def _resume(self, forked: bool) -> str | None:
        """Run what is due; return what is wrong then."""
        pending = self._due()
        held = Held(self.cell, pending)
        code = start(self.campaign, self.cell, self.log, forked=forked).wait() if pending else 0
        if code != 0:
            return f"the rerun exits {code}: {self._words()}"
        if fault := held.fault():
            return fault
        if left := self._due():
            return f"after the rerun {', '.join(left)} is due: {self._words()}"
        if found := difference(content(self.cell.folder), self.undisturbed):
            return f"other files: {found}"
        if not until(lambda: not leaks(self.folder), LEAK_SECONDS):
            return f"left behind: {', '.join(leaks(self.folder))}"
        return None

    def _due(self) -> list[Stage]:
        return due(self.campaign.study, self.cell)

    def _words(self) -> str:
        return self.log.read_text()[-600:]

"""How far a run is: the cells and steps at work, how many cells are left, and when it may end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from pivotbench.cells import Cell
from pivotbench.results import Stage


@dataclass(frozen=True)
class Left:
    """Cells not yet done: those ``known`` to run, and how many more rounds and phases add to them.

    How many rounds a race takes shows only while it is run; ``least`` supposes that nobody drops out
    before the fewest rounds, ``most`` that everybody stays to the last.
    """

    known: int = 0
    least: int = 0
    most: int = 0


@dataclass
class Work:
    """A cell at work, or a step of another kind (``cell`` None): its stage, since when, how far it is.

    ``stages_done`` holds the status of each stage that is over. Times are of the monotonic clock.
    """

    title: str
    began: float
    cell: Cell | None = None
    stage: Stage | None = None
    stage_began: float = 0.0
    stages_done: dict[Stage, str] = field(default_factory=dict)
    detail: str = ""


class Progress:
    """The state of one run, told by whoever hears of its jobs."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.began = clock()
        self.work: dict[str, Work] = {}
        self.done = 0
        self.left = Left()
        self.cell_seconds: float | None = None
        self.phase = ""
        self._first: float | None = None
        self._last = self.began

    def start_stage(self, cell: Cell, stage: Stage, *, away: bool = False) -> None:
        """A stage of a cell begins; ``away`` on a cluster, where nothing is heard until it is over."""
        now = self.clock()
        work = self.work.setdefault(cell.label, Work(cell.label, now, cell))
        work.stage, work.stage_began, work.detail = stage, now, "submitted" if away else ""
        self.phase = f"{cell.phase}, round {cell.round}"
        self._first = now if self._first is None else self._first

    def end_stage(self, cell: Cell, stage: Stage, status: str) -> None:
        """A stage of a cell is over, with this status."""
        if (work := self.work.get(cell.label)) is not None:
            work.stages_done[stage] = status
            work.stage, work.detail = None, ""

    def end_cell(self, cell: Cell) -> float:
        """A cell is over; return how many seconds it took."""
        now = self.clock()
        work = self.work.pop(cell.label, None)
        self.done += 1
        self.left = Left(max(0, self.left.known - 1), self.left.least, self.left.most)
        self._last = now
        if self._first is not None:
            # By the clock and not by the cells' own times: several may run at once.
            self.cell_seconds = (now - self._first) / self.done
        return now - work.began if work else 0.0

    def start_step(self, title: str) -> None:
        """A step that is no cell begins."""
        now = self.clock()
        self.work[title] = Work(title, now, stage_began=now)

    def end_step(self, title: str) -> None:
        """A step that is no cell is over."""
        self.work.pop(title, None)

    def hear(self, label: str, words: str) -> bool:
        """Note how far the stage at work in the cell ``label`` is; return whether there is such a one."""
        if (work := self.work.get(label)) is None:
            return False
        work.detail = words
        return True

    def cells_words(self) -> str:
        """Return how many cells are done, of how many; "" where the run has none."""
        total, more = self.done + self.left.known, self.left.most
        if not total:
            return ""
        return f"{self.done} of {'at most ' if more else ''}{total + more} cells"

    def end_words(self) -> str:
        """Return when the run may end, by the mean time of a cell; "" where no cell told that yet."""
        if self.cell_seconds is None or not self.left.known + self.left.most:
            return ""
        soonest, latest = (
            _clock_time(max(0.0, self._last + self.cell_seconds * (self.left.known + more) - self.clock()))
            for more in (self.left.least, self.left.most)
        )
        return f"ends about {soonest}" if soonest == latest else f"ends {soonest} to {latest}"

    def elapsed_words(self) -> str:
        """Return how long the run has been at work."""
        return span(self.clock() - self.began)


def span(seconds: float) -> str:
    """Return a duration as a clock shows it: ``0:07``, ``2:13``, ``1:02:13``."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _clock_time(in_seconds: float) -> str:
    then = datetime.now() + timedelta(seconds=in_seconds)
    return then.strftime("%H:%M" if in_seconds < 12 * 3600 else "%a %H:%M")

"""Cells with which nothing is to be done: they hold, and what was made of them was made after them.

A cell that is not settled is not therefore stale: whoever runs the stages has to look at it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from pathlib import Path

from pivotbench.campaign import Campaign
from pivotbench.cells import Cell
from pivotbench.results import STAGES

# What is made of all cells together, before charts and report are made of it.
PRODUCTS = (
    *("measurements.parquet", "measurements.csv", "environment.json"),
    *("decision.json", "summary.md"),
)


@dataclass
class Settled:
    """The settled cells of a campaign, each judged once: as it stood when it was first asked for.

    ``holds`` tells of a cell whether its stage files are there and hold.
    """

    campaign: Campaign
    holds: Callable[[Cell], bool]
    _judged: dict[Cell, bool] = field(default_factory=dict)
    _races: dict[Path, float] = field(default_factory=dict)

    def __contains__(self, cell: Cell) -> bool:
        """Return whether a cell's stages hold and were made in order, and its race and the decision later.

        What is made of a cell and is missing will be made, whether the cell is looked at or not.
        """
        if cell not in self._judged:
            self._judged[cell] = self._in_order(cell) and self.holds(cell)
        return self._judged[cell]

    def _in_order(self, cell: Cell) -> bool:
        written = [_written(cell.file(stage)) for stage in STAGES]
        times = [*written, self._race(cell)]
        return inf not in written and times == sorted(times) and written[-1] <= self._products

    @cached_property
    def _products(self) -> float:
        return min(_written(self.campaign.results / name) for name in PRODUCTS)

    def _race(self, cell: Cell) -> float:
        race = self.campaign.race_file(cell.phase, cell.round)
        if race not in self._races:
            self._races[race] = _written(race)
        return self._races[race]


def _written(path: Path) -> float:
    """Return when a file was written, in nanoseconds; infinity where there is none."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return inf

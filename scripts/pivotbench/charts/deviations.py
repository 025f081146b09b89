"""How far every window lay from the mean of its configuration, and when it was measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pivotbench.evidence import CellFiles

CELL = ["phase", "configuration", "round"]
LOAD = ["workload", "concurrency", "rate_per_second"]


def deviations(samples: pd.DataFrame) -> pd.DataFrame:
    """Return the samples with ``deviation``: the relative distance from the mean over all rounds.

    The mean is that of log tok/s of the same phase, configuration and load, so that a deviation
    of 0.05 is 5 % above it whatever the speed.
    """
    logs = np.log(samples["output_tok_s"])
    same = samples.assign(log=logs).groupby(["phase", "configuration", *LOAD], dropna=False)["log"]
    return samples.assign(deviation=np.exp(logs - same.transform("mean")) - 1)


def minutes_into_campaign(cells: Iterable[CellFiles]) -> dict[tuple[str, str, int], float]:
    """Return when each measured cell's throughput stage began, in minutes from the first."""
    begun = {
        (cell.phase, cell.configuration, cell.round): at
        for cell in cells
        if (at := cell.load_began) is not None
    }
    first = min(begun.values(), default=None)
    return {key: (when - first).total_seconds() / 60 for key, when in begun.items() if first}


def window_offsets(cells: Iterable[CellFiles]) -> dict[tuple[Any, ...], float]:
    """Return each window's middle in seconds from the start of its run, by cell, load and window."""
    return {
        (
            *(cell.phase, cell.configuration, cell.round, run["workload"]),
            *(run["concurrency"], run.get("rate_per_second"), at["window"]),
        ): (at["begin_seconds"] + at["end_seconds"]) / 2
        for cell in cells
        for run in ((cell.throughput or {}).get("runs") or [])
        for at in run["windows"]
    }


def deviations_in_time(samples: pd.DataFrame, cells: Sequence[CellFiles]) -> tuple[pd.DataFrame, bool]:
    """Return one row a window with its ``deviation`` and where it stands in time, and whether that is known.

    ``at``: minutes into the campaign at the window's middle, or its round where no cell tells when it ran.
    """
    begun, offsets = minutes_into_campaign(cells), window_offsets(cells)
    timed = len(begun) > 0
    table = deviations(samples)[[*CELL, *LOAD, "window", "deviation"]]
    places = table[[*CELL, *LOAD, "window"]].astype(object).where(table.notna(), None)
    at = [
        begun.get(place[:3], 0.0) + offsets.get(place, 0.0) / 60 if timed else float(place[2])
        for place in places.itertuples(index=False, name=None)
    ]
    return table.assign(at=at), timed

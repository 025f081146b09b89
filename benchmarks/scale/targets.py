"""What the workflow is held to at scale, on two cores."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from benchmarks.scale.overhead import Overhead
from benchmarks.scale.spent import Spent

from pivotbench.results import Stage

NO_OP_SECONDS = {1000: 10.0, 5000: 45.0}
DECISION_CELLS, DECISION_SECONDS = 3000, 20.0
STAGE_SECONDS = 0.5
# A cell more may cost this much more than on average before, by processor time: noise, not growth.
LINEAR = 1.1


def misses(
    no_ops: Mapping[int, Spent],
    decisions: Mapping[int, Spent],
    overheads: Mapping[Stage, Overhead],
) -> list[str]:
    """Return a line for each target that is missed; sizes that were not run are not judged."""
    missed = [
        f"no-op at {cells:,} cells: {no_ops[cells].wall_seconds:.1f} s, not {limit:g}"
        for cells, limit in NO_OP_SECONDS.items()
        if cells in no_ops and no_ops[cells].wall_seconds > limit
    ]
    by_cell = costs_by_cell(no_ops)
    for smaller, larger in pairwise(by_cell):
        if by_cell[larger] > LINEAR * by_cell[smaller]:
            missed.append(
                f"growth: a cell costs {1000 * by_cell[larger]:.2f} ms of processor time at {larger:,}, "
                f"{1000 * by_cell[smaller]:.2f} at {smaller:,}"
            )
    decided = decisions.get(DECISION_CELLS)
    if decided is not None and decided.wall_seconds > DECISION_SECONDS:
        missed.append(
            f"decision and report for {DECISION_CELLS:,} cells: {decided.wall_seconds:.1f} s, "
            f"not {DECISION_SECONDS:g}"
        )
    missed += [
        f"overhead of {stage}: {cost.wall_seconds:.2f} s, not {STAGE_SECONDS:g}"
        for stage, cost in overheads.items()
        if cost.wall_seconds > STAGE_SECONDS
    ]
    return missed


def costs_by_cell(no_ops: Mapping[int, Spent]) -> dict[int, float]:
    """Return the processor seconds of a no-op for each cell beyond the smallest campaign's, by size."""
    least = min(no_ops)
    return {
        cells: (no_ops[cells].cpu_seconds - no_ops[least].cpu_seconds) / (cells - least)
        for cells in sorted(no_ops)
        if cells >= 1000
    }

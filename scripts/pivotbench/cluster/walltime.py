"""The time limit that a cluster is asked for, by what the study itself says a stage may take.

It is an upper estimate: a healthy cell is never cut off, and one that hangs ends as a result of its own.
"""

from __future__ import annotations

import math

from pivotbench.durations import most_seconds
from pivotbench.results import STAGES, Stage
from pivotbench.study import Study

# The job's own Snakemake, imports from a slow file system.
OVERHEAD_SECONDS = 60.0


def stage_minutes(study: Study, stage: Stage) -> int:
    """Return the minutes to ask of a cluster for one stage; those of a cell are their sum."""
    return math.ceil((most_seconds(study, stage) + OVERHEAD_SECONDS) / 60)


def cell_minutes(study: Study) -> int:
    """Return the minutes that the job of one cell asks for."""
    return sum(stage_minutes(study, stage) for stage in STAGES)

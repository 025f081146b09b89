"""Run the teardown stage of one cell."""

from pivotbench.stages.context import run_stage
from pivotbench.stages.teardown import teardown

run_stage("teardown", teardown)

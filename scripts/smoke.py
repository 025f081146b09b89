"""Run the smoke stage of one cell."""

from pivotbench.stages.context import run_stage
from pivotbench.stages.smoke import smoke

run_stage("smoke", smoke)

"""Run the launch stage of one cell."""

from pivotbench.stages.context import run_stage
from pivotbench.stages.launch import launch

run_stage("launch", launch)

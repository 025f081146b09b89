"""Run the throughput stage of one cell."""

from pivotbench.stages.context import run_stage
from pivotbench.stages.throughput import throughput

run_stage("throughput", throughput)

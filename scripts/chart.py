"""Draw the charts of a decided study: HTML, SVG and PNG."""

import argparse
from pathlib import Path

from pivotbench.charts import build_charts, source_line, write_charts
from pivotbench.command import run
from pivotbench.report.inputs import read_inputs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", required=True, type=Path, help="folder of the study, results/<study>")
    parser.add_argument("--output", required=True, type=Path, help="folder for the charts")
    asked = parser.parse_args()
    inputs = read_inputs(asked.results)
    asked.output.mkdir(parents=True, exist_ok=True)
    charts = build_charts(inputs.decision, inputs.measurements, inputs.cells)
    write_charts(charts, asked.output, source_line(inputs.decision, inputs.cells))


run(main)

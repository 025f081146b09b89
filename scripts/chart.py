"""Draw the charts of a decided study: HTML, SVG, PNG and Vega-Lite."""

import argparse
from pathlib import Path

from pivotbench.charts.build import build_charts
from pivotbench.charts.output import two_drawing, write_charts
from pivotbench.charts.source import source_line
from pivotbench.charts.spec import specifications
from pivotbench.command import run
from pivotbench.report.inputs import read_chart_inputs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", required=True, type=Path, help="folder of the study, results/<study>")
    parser.add_argument("--output", required=True, type=Path, help="folder for the charts")
    asked = parser.parse_args()
    with two_drawing() as meanwhile:
        inputs = read_chart_inputs(asked.results)
        asked.output.mkdir(parents=True, exist_ok=True)
        charts = specifications(build_charts(inputs.decision, inputs.measurements, inputs.cells))
        write_charts(charts, asked.output, source_line(inputs.decision, inputs.cells), meanwhile)


run(main)

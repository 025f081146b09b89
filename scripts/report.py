"""Write the report of a decided study: one HTML file that can be sent as it is."""

import argparse
import sys
from pathlib import Path

from pivotbench.command import run
from pivotbench.report import write_report
from pivotbench.report.inputs import read_report_inputs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", required=True, type=Path, help="folder of the study, results/<study>")
    parser.add_argument("--output", required=True, type=Path, help="the HTML file")
    asked = parser.parse_args()
    inputs = read_report_inputs(asked.results)
    for fault in inputs.altered:
        print(f"warning: {fault}", file=sys.stderr)
    write_report(asked.output, inputs.decision, inputs.charts, inputs.cells, inputs.altered)


run(main)

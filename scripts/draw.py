"""Draw charts from their specifications: on standard input lines of [names, folder, source] from chart.py."""

import json
import sys
from pathlib import Path

from pivotbench.charts.output import draw, start_vega
from pivotbench.command import run


def main() -> None:
    start_vega()
    for line in sys.stdin:
        names, folder, source = json.loads(line)
        draw(names, Path(folder), source)


run(main)

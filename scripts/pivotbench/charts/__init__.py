"""Charts of a decision: Altair objects, and the same as HTML, SVG and PNG that stand alone."""

from pivotbench.charts.build import build_charts
from pivotbench.charts.output import write_charts
from pivotbench.charts.source import source_line

__all__ = ["build_charts", "source_line", "write_charts"]

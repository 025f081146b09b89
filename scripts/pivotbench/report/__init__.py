"""The report: one self-contained HTML file of a decision and the evidence for it."""

from pivotbench.report.page import render, write_report

__all__ = ["render", "write_report"]

"""Pivotbench: which serving configuration works, which is faster, whether speculation pays."""

__version__ = "0.1.0"

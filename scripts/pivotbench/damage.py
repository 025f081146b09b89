"""Derived files that cannot be read: half-written by another program, or spoilt by a copy or a disk.

Stage files are judged by staleness; these are made of them, in moments.
"""

from __future__ import annotations

import json
from pathlib import Path

from pivotbench.charts.stored import read_charts
from pivotbench.errors import UserError
from pivotbench.evidence import race_paths
from pivotbench.rounds import RACE_KEYS

PARQUET = b"PAR1"
# Without these a file of the name is none of ours.
OTHER_KEYS = frozenset({"schema"})


def damaged_files(results: Path) -> list[Path]:
    """Return the races, tables, decisions and charts in ``results/<study>`` that no reader makes sense of."""
    single = [results / name for name in ("environment.json", "decision.json", "measurements.parquet")]
    damaged = [path for path in [*race_paths(results), *single] if path.is_file() and not _whole(path)]
    charts = results / "charts"
    return damaged if _drawn(charts) or not charts.exists() else [*damaged, charts]


def _whole(path: Path) -> bool:
    try:
        data = path.read_bytes()
        if path.suffix == ".parquet":
            return data[:4] == data[-4:] == PARQUET and len(data) > 12
        content, keys = json.loads(data), RACE_KEYS if path.parent.name == "race" else OTHER_KEYS
        return isinstance(content, dict) and keys <= content.keys()
    except (OSError, ValueError, RecursionError):
        return False


def _drawn(charts: Path) -> bool:
    try:
        read_charts(charts)
    except UserError:
        return False
    return True

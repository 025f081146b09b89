"""Derived files that cannot be read: half-written by another program, or spoilt by a copy or a disk.

Stage files are judged by staleness; these are made of them, in moments.
"""

from __future__ import annotations

import json
from pathlib import Path

from pivotbench.evidence import race_paths

PARQUET = b"PAR1"
# What every reader relies on: without these a file of the name is none of ours.
RACE_KEYS = frozenset({"phase", "round", "evidence", "next", "ended", "base", "noise", "eliminated", "log"})
OTHER_KEYS = frozenset({"schema"})


def damaged_files(results: Path) -> list[Path]:
    """Return the races, tables and decisions in ``results/<study>`` that no reader could make sense of."""
    single = [results / name for name in ("environment.json", "decision.json", "measurements.parquet")]
    return [path for path in [*race_paths(results), *single] if path.is_file() and not _whole(path)]


def _whole(path: Path) -> bool:
    try:
        data = path.read_bytes()
        if path.suffix == ".parquet":
            return data[:4] == data[-4:] == PARQUET and len(data) > 12
        content, keys = json.loads(data), RACE_KEYS if path.parent.name == "race" else OTHER_KEYS
        return isinstance(content, dict) and keys <= content.keys()
    except (OSError, ValueError, RecursionError):
        return False

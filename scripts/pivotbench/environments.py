"""environment.json: the machines the evidence was taken on, each with its cells."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pivotbench.evidence import CellFiles
from pivotbench.files import canonical_json

SCHEMA = "pivotbench/environment/1"


def aggregate(cells: Iterable[CellFiles]) -> dict[str, Any]:
    """Return each distinct environment that the launches recorded, with the cells launched in it."""
    found: dict[str, dict[str, Any]] = {}
    for cell in cells:
        if cell.environment:
            entry = found.setdefault(
                canonical_json(cell.environment), {"environment": cell.environment, "cells": []}
            )
            entry["cells"].append(f"{cell.phase}/{cell.configuration}/r{cell.round}")
    return {"schema": SCHEMA, "environments": [found[key] for key in sorted(found)]}

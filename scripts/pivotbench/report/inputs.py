"""What charts and report read of a results folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from pivotbench.errors import UserError
from pivotbench.evidence import CellFiles, evidence_folders, read_cells
from pivotbench.files import read_json
from pivotbench.raw_files import altered
from pivotbench.results import DECISION_SCHEMA


@dataclass(frozen=True)
class Inputs:
    """A decision with the samples and the stage files it rests on.

    ``altered``: a line for each raw file that is not the one its stage wrote.
    """

    decision: dict[str, Any]
    measurements: pd.DataFrame
    cells: list[CellFiles]
    altered: list[str]


def read_inputs(results: Path) -> Inputs:
    """Read ``results/<study>``; raises UserError where it is not decided yet, or by another version."""
    decision, measurements = results / "decision.json", results / "measurements.parquet"
    for needed in (decision, measurements):
        if not needed.is_file():
            raise UserError(f"{needed}: missing; run `snakemake --cores 1 {needed}` first")
    decided = read_json(decision)
    schema = decided.get("schema") if isinstance(decided, dict) else None
    if schema != DECISION_SCHEMA:
        raise UserError(
            f"{decision}: written by another version ({schema}, not {DECISION_SCHEMA}); "
            "remove it and run again"
        )
    folders = evidence_folders(results, decided)
    cells = read_cells(folders)
    try:
        table = pd.read_parquet(measurements)
    except (OSError, ValueError) as error:
        raise UserError(f"{measurements}: cannot be read ({error}); remove it and run again") from None
    return Inputs(decided, table, cells, _altered(folders, cells))


def _altered(folders: list[Path], cells: list[CellFiles]) -> list[str]:
    records = [
        (folder, (cell.throughput or {}).get(key))
        for folder, cell in zip(folders, cells, strict=True)
        for key in ("requests_file", "telemetry_file")
    ]
    return [fault for folder, recorded in records if (fault := altered(folder, recorded))]

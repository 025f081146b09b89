"""What charts and report read of a results folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pivotbench.charts.spec import Spec
from pivotbench.charts.stored import read_charts
from pivotbench.errors import UserError
from pivotbench.evidence import MEASURED, CellFiles, StageFile, evidence_folders, read_cells
from pivotbench.files import read_json
from pivotbench.raw_files import altered
from pivotbench.results import DECISION_SCHEMA
from pivotbench.stage_files import read_stage

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class ChartInputs:
    """A decision with the samples it rests on, and what was measured where (evidence.MEASURED)."""

    decision: dict[str, Any]
    measurements: pd.DataFrame
    cells: list[CellFiles]


@dataclass(frozen=True)
class ReportInputs:
    """A decision with its charts' specifications and the stage files it rests on.

    ``altered``: a line for each raw file that is not the one its stage wrote.
    """

    decision: dict[str, Any]
    charts: dict[str, Spec]
    cells: list[CellFiles]
    altered: list[str]


def read_chart_inputs(results: Path) -> ChartInputs:
    """Read ``results/<study>``; raises UserError where it is not decided yet, or by another version."""
    decision, path = _decision(results), _there(results / "measurements.parquet")
    import pandas as pd

    try:
        table = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read ({error}); remove it and run again") from None
    return ChartInputs(decision, table, read_cells(evidence_folders(results, decision), stages=MEASURED))


def read_report_inputs(results: Path) -> ReportInputs:
    """Read ``results/<study>``; raises UserError where it is not decided, or its charts are not drawn."""
    decision = _decision(results)
    charts = read_charts(_there(results / "charts"))
    folders = evidence_folders(results, decision)
    cells = read_cells(folders, _without_answers)
    return ReportInputs(decision, charts, cells, _altered(folders, cells))


def _there(path: Path) -> Path:
    if not path.exists():
        raise UserError(f"{path}: missing; run `snakemake --cores 1 {path}` first")
    return path


def _decision(results: Path) -> dict[str, Any]:
    path = _there(results / "decision.json")
    try:
        decided: dict[str, Any] = read_json(path)
    except ValueError:
        raise UserError(f"{path}: not JSON; remove it and run again") from None
    schema = decided.get("schema") if isinstance(decided, dict) else None
    if schema != DECISION_SCHEMA:
        raise UserError(
            f"{path}: written by another version ({schema}, not {DECISION_SCHEMA}); remove it and run again"
        )
    return decided


def _without_answers(path: Path) -> StageFile | None:
    """A stage file but for its answers token by token, which weigh most and are on no page."""
    content = read_stage(path)
    for prompt in (content or {}).get("prompts", ()):
        prompt.pop("answers", None)
    return content


def _altered(folders: list[Path], cells: list[CellFiles]) -> list[str]:
    records = [
        (folder, (cell.throughput or {}).get(key))
        for folder, cell in zip(folders, cells, strict=True)
        for key in ("requests_file", "telemetry_file")
    ]
    return [fault for folder, recorded in records if (fault := altered(folder, recorded))]

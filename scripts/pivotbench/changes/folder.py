"""A folder of results as a comparison reads it: its decision, and the cells that the decision rests on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pivotbench.decision.document import Decision
from pivotbench.errors import UserError
from pivotbench.evidence import CellFiles, evidence_folders, read_cells
from pivotbench.files import read_json
from pivotbench.measurements import rows
from pivotbench.results import DECISION_SCHEMA, STAGES
from pivotbench.stage_files import load_stage

HOW = "snakemake --cores 1 compare --config old=results/OLD new=results/NEW"
Key = tuple[str, str]  # phase, configuration


@dataclass(frozen=True)
class Results:
    """One folder: what was decided and the evidence."""

    path: Path
    decision: dict[str, Any]
    cells: list[CellFiles]

    @cached_property
    def eliminated(self) -> dict[Key, dict[str, Any]]:
        """Who is out and why."""
        return {(e["phase"], e["configuration"]): e for e in self.decision["eliminated"]}

    @cached_property
    def tried(self) -> list[Key]:
        """Every configuration that was launched, phases in order."""
        return sorted({(c.phase, c.configuration) for c in self.cells})

    @cached_property
    def ranked(self) -> dict[Key, dict[str, Any]]:
        """Who has a value of the metric."""
        return {(r["phase"], r["configuration"]): r for r in self.decision["ranking"]}

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The measurements of the cells."""
        return rows(self.cells)

    def works(self, key: Key) -> bool:
        """Whether a configuration was tried and is not eliminated."""
        return key in self.tried and key not in self.eliminated

    def own(self, key: Key) -> list[CellFiles]:
        """The cells of one configuration, in the order of rounds."""
        return sorted((c for c in self.cells if (c.phase, c.configuration) == key), key=lambda c: c.round)

    @property
    def winner(self) -> Key | None:
        """The winner as it was ranked, a pinned base as its baseline; None where there is none."""
        name = self.decision["winner"]
        return next((key for key in self.ranked if key[1] in (name, f"{name}+none")), None)


def read_pair(old: str | None, new: str | None) -> tuple[Results, Results]:
    """Read the two folders named by ``--config old=... new=...``.

    Raises UserError, one line, for a missing, damaged or undecided folder, one of another version, the same
    folder twice, and two that were decided by different metrics.
    """
    if not old or not new:
        lacks = " and ".join(f"--config {name}=" for name, value in (("old", old), ("new", new)) if not value)
        raise UserError(f"compare: no {lacks}; name two folders of results: {HOW}")
    first, second = Path(old), Path(new)
    for name, path in (("old", first), ("new", second)):
        if not path.is_dir():
            raise UserError(f"--config {name}={path}: no such folder{_there(path.parent)}")
    if first.resolve() == second.resolve():
        raise UserError(f"--config old={old} new={new}: the same folder twice; name two folders of results")
    before, after = read_results(first), read_results(second)
    metrics = [_metric(each.decision["metric"]) for each in (before, after)]
    if metrics[0] != metrics[1]:
        raise UserError(
            f"{old} and {new} were decided by different metrics ({metrics[0]} | {metrics[1]}); give both "
            "studies the same decision.metric and decide again with --config frozen=true"
        )
    return before, after


def read_results(path: Path) -> Results:
    """Read one folder of results; raises UserError where a file of it is missing or damaged."""
    decision = _decision(path / "decision.json")
    cells = read_cells(evidence_folders(path, decision), _undamaged)
    if not any(cell.stage(stage) for cell in cells for stage in STAGES):
        raise UserError(f"{path}: holds no stage files; compare folders that still have their cells")
    return Results(path, decision, cells)


def _undamaged(file: Path) -> dict[str, Any] | None:
    """Return a stage file's content, None where it is missing; raises UserError where it is damaged."""
    return load_stage(file) if file.exists() else None


def _decision(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise UserError(f"{path}: missing; {path.parent} is no folder of results, or not decided yet")
    decision = _json(path)
    schema = decision.get("schema") if isinstance(decision, dict) else None
    if schema != DECISION_SCHEMA:
        raise UserError(
            f"{path}: written by another version ({schema}, not {DECISION_SCHEMA}); remove it and decide "
            "again with --config frozen=true"
        )
    try:
        Decision.model_validate(decision)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise UserError(
            f"{path}: damaged: {where}: {first['msg'].lower()}; remove it and decide again"
        ) from None
    return dict(decision)


def _json(path: Path) -> Any:
    try:
        return read_json(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise UserError(f"{path}: damaged: not JSON; restore it, or remove it and decide again") from None


def _metric(metric: dict[str, Any]) -> str:
    total = sum(metric["workloads"].values())
    mix = ", ".join(f"{w} x {weight / total:.3g}" for w, weight in sorted(metric["workloads"].items()))
    if metric["goodput"]:
        return f"goodput of {mix} within {_limits(metric['goodput'])}"
    return f"{mix} at concurrency {metric['concurrency']}"


def _limits(goodput: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(goodput.items()) if value is not None)


def _there(parent: Path) -> str:
    decided = sorted({p.parent for place in (parent, Path("results")) for p in place.glob("*/decision.json")})
    return f"; there are {', '.join(map(str, decided))}" if decided else ""

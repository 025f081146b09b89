"""The stage files of one cell, and what they prove: how it failed, or which server was measured."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pivotbench.errors import UserError
from pivotbench.results import PHASES, STAGES, Reason, Stage
from pivotbench.stage_files import read_stage

StageFile = dict[str, Any]
ReadStage = Callable[[Path], StageFile | None]


@dataclass(frozen=True)
class CellFiles:
    """One cell (configuration x round) as its four stage files tell it; None where a file is missing."""

    phase: str
    configuration: str
    round: int
    launch: StageFile | None
    smoke: StageFile | None
    throughput: StageFile | None
    teardown: StageFile | None

    def stage(self, stage: Stage) -> StageFile | None:
        """Return one stage's file."""
        content: StageFile | None = getattr(self, stage)
        return content

    @property
    def measured(self) -> bool:
        """Whether the cell gives numbers: its throughput stage ended well."""
        return self.throughput is not None and self.throughput["status"] == "ok"

    @property
    def load_began(self) -> datetime | None:
        """When the stage that gives the numbers began; None where there are none."""
        if self.throughput is None or not self.measured:
            return None
        return datetime.fromisoformat(self.throughput["started"])

    @property
    def failure(self) -> tuple[Stage, Reason] | None:
        """The first stage that failed and why; later failures of a cell follow from it."""
        for stage in STAGES:
            content = self.stage(stage)
            if content is not None and content["status"] == "failed":
                return stage, _reason(content)
            judged = stage == "throughput" and content is not None and not content.get("speed_only", False)
            if judged and (fired := _garbage(content)):
                why = f"text received under load is garbage: {', '.join(fired)}"
                return stage, Reason.of("garbage_under_load", why)
        return None

    @property
    def environment(self) -> dict[str, Any]:
        """The environment the launch recorded; {} where nothing launched."""
        return dict((self.launch or {}).get("environment") or {})

    @property
    def requested(self) -> dict[str, Any]:
        """The flags the study asked for, shared ones included."""
        return dict((self.launch or {}).get("requested") or {})

    @property
    def effective(self) -> dict[str, Any]:
        """The settings in effect on the server that throughput used; {} where it reported none."""
        return dict(_server(self.throughput).get("effective") or {})

    @property
    def launch_id(self) -> str | None:
        """The server that throughput used."""
        launch_id = _server(self.throughput).get("launch_id")
        return None if launch_id is None else str(launch_id)


# What was measured, and on which machine: all that tables and charts are made of.
MEASURED: tuple[Stage, ...] = ("launch", "throughput")

_ROUND = re.compile(r"r([1-9][0-9]*)")
_RACE = re.compile(rf"({'|'.join(PHASES)})\.r[1-9][0-9]*\.json")


def is_cell(folder: Path) -> bool:
    """Return whether a folder has the name of a cell's; beside them may lie copies and other things."""
    return _ROUND.fullmatch(folder.name) is not None and folder.is_dir()


def read_cell(folder: Path, read: ReadStage = read_stage, stages: Collection[Stage] = STAGES) -> CellFiles:
    """Read the cell in ``.../<phase>/<configuration>/r<n>``; raises UserError for another kind of path.

    ``read`` says what becomes of a stage file that is no evidence: ``read_stage`` takes it for missing.
    Only ``stages`` are read; the others are None. Of the settings in effect, which every stage repeats and
    which weigh most, those of the server that throughput used are kept.
    """
    match = _ROUND.fullmatch(folder.name)
    if match is None:
        raise UserError(f"{folder}: not a cell; expected <phase>/<configuration>/r<n>")
    files = {stage: read(folder / f"{stage}.json") if stage in stages else None for stage in STAGES}
    for stage, content in files.items():
        if stage != "throughput" and content is not None and content["server"] is not None:
            content["server"].pop("effective", None)
    return CellFiles(folder.parent.parent.name, folder.parent.name, int(match[1]), **files)


def race_paths(results: Path) -> list[Path]:
    """Return the races stored in ``results/<study>``, whatever else lies beside them."""
    return sorted(path for path in (results / "race").glob("*.json") if _RACE.fullmatch(path.name))


def read_cells(
    folders: Iterable[Path], read: ReadStage = read_stage, stages: Collection[Stage] = STAGES
) -> list[CellFiles]:
    """Read many cells that are kept to the end of the process; see read_cell.

    Python's collector walks over all that is kept again and again as more is made, which would be half of
    the work: it rests while cells are read, and leaves alone what was read.
    """
    gc.disable()
    try:
        return [read_cell(folder, read, stages) for folder in folders]
    finally:
        gc.freeze()
        gc.enable()


def evidence_folders(results: Path, decision: Mapping[str, Any]) -> list[Path]:
    """Return the folders of the cells that a decision rests on, in the order of phases and rounds.

    Which they are the decision itself says. Other files on disk are no evidence: of configurations that the
    study no longer has, of rounds beyond the race that ended a phase, or of a phase it runs no more.
    """
    cells = [
        (row["phase"], number, row["configuration"])
        for row in decision["evidence"]
        for number in row["rounds"]
    ]
    return [results / phase / name / f"r{number}" for phase, number, name in sorted(cells)]


def _server(content: StageFile | None) -> dict[str, Any]:
    return dict((content or {}).get("server") or {})


def _reason(content: StageFile) -> Reason:
    if content.get("reason") is None:
        return Reason.of("unknown", "the stage failed and left no reason")
    return Reason.from_json(content["reason"])


def _garbage(throughput: StageFile | None) -> list[str]:
    runs = (throughput or {}).get("runs") or []
    return sorted({name for run in runs for name in (run.get("answers") or {}).get("bad") or {}})

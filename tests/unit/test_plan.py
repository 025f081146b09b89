"""`validate` tells the time of a study by the cells that were measured, and by the study where none were."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from study_samples import RIGHT, study_of

from factory import UNSUPPORTED, Cell, write_cell
from pivotbench.campaign import Campaign
from pivotbench.evidence import race_paths
from pivotbench.files import write_json
from pivotbench.plan import plan

ROOT = Path(__file__).resolve().parents[2]


def told_time(folder: Path, text: str = RIGHT) -> str:
    return plan(Campaign(study=study_of(folder, text), root=ROOT))[-1]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_without_cells_the_time_is_that_of_the_loads_and_the_requests_they_need(folder: Path) -> None:
    # Three loads of 2 s: 4 answers of 1.6 s, one of four at once, and 4 of 1.632 s with their prompts.
    assert told_time(folder).startswith("time: 6.0 s to 15 s a cell are measured, the longer at 10 tok/s")
    patient = RIGHT.replace("min_requests: 4", "min_requests: 400")
    assert "6.0 s to 24 min a cell" in told_time(folder, patient)


def test_with_cells_it_is_theirs_and_neither_crashes_nor_copies_count(folder: Path) -> None:
    measured = write_cell(folder / "results", "sample", Cell("backends", "plain", 1, {("free", 1): 100.0}))
    alone = told_time(folder)
    assert alone.startswith("time: about ")
    write_cell(
        folder / "results", "sample", Cell("backends", "flash", 1, failed="launch", reason=UNSUPPORTED)
    )
    shutil.copytree(measured, measured.with_name("r1.bak"))
    measured.with_name("r9").write_text("no folder")
    assert told_time(folder) == alone


def test_copies_of_races_are_no_races(folder: Path) -> None:
    results = folder / "results" / "sample"
    race = {"round": 1, "ended": "all told", "evidence": [{"configuration": "plain", "rounds": [1]}]}
    write_json(results / "race" / "backends.r1.json", race)
    write_json(results / "race" / "backends.r1.bak.json", {**race, "evidence": []})
    write_json(results / "race" / "base.json", {"base": "plain"})
    assert [path.name for path in race_paths(results)] == ["backends.r1.json"]

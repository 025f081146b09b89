"""A wall clock that jumps while a cell is measured spoils none of its figures and makes nothing anew."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from faults.one_cell import ROOT, OneCell
from faults.soak.cell_run import due
from faults.soak.files import content, difference
from pivotbench.files import read_json
from pivotbench.results import STAGES

LONG_SECONDS = 60.0


def test_a_clock_that_jumps_all_the_time_spoils_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    cell = OneCell(folder)
    cell.run_all()
    undisturbed = content(cell.results)
    for file in cell.results.glob("*.json"):
        file.unlink()
    monkeypatch.setenv("PYTHONPATH", f"{Path(__file__).parent / 'clock'}:{ROOT / 'scripts'}")
    cell.run_all()
    assert difference(content(cell.results), undisturbed) is None
    assert due(cell.campaign.study, cell.cell) == []
    for stage in STAGES:
        told = read_json(cell.results / f"{stage}.json")
        began, ended = (datetime.fromisoformat(told[key]) for key in ("started", "ended"))
        assert 0 <= (ended - began).total_seconds() < LONG_SECONDS
    launch = read_json(cell.results / "launch.json")
    assert 0 < launch["ready_seconds"] < LONG_SECONDS
    [run] = read_json(cell.results / "throughput.json")["runs"]
    for figures in (run["ttft_seconds"], run["itl_seconds"], run["e2e_seconds"]):
        assert 0 < figures["p50"] <= figures["p99"] < LONG_SECONDS

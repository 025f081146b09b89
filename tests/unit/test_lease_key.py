"""One spelling of whose server a lease is, for the stages, the terminal and the benchmark of kills."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.gpu import kills

from pivotbench.cells import Cell
from pivotbench.lease.key import lease_name
from pivotbench.lease.processes import Identity
from pivotbench.lease.state import Handle
from pivotbench.machine.gpu import Gpu
from pivotbench.stages.context import Context
from pivotbench.terminal import devices

CELL = Cell("mine", "speculative", "fa3+ngram", 2)
REQUEST = {"flags": {"model": "a:{b"}, "env": {"A": "two\nlines"}}


@pytest.mark.parametrize("folder", ["plain", "a:{b", "two\nlines"])
def test_a_stages_server_is_found_by_its_cell_whatever_its_folder_and_flags_are_called(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / folder)
    context = Context(
        *("launch", CELL.as_json(), "", REQUEST, {}, {}, CELL.file("launch"), ""),  # type: ignore[arg-type]
        owner=Identity.own(),
    )
    handle = Handle("id", context.key, "me", "1:1", "ready", devices=["GPU-1"])
    monkeypatch.setattr(devices, "live_launches", lambda: [(tmp_path, handle)])
    monkeypatch.setattr(kills, "live_launches", lambda: [(tmp_path, handle)])
    monkeypatch.setattr(devices, "visible_gpus", lambda: [Gpu("GPU-1", "H200", 3, 1, "9.0")])
    assert devices.Devices("me").held() == {lease_name(CELL.as_json()): "GPU 3"}
    assert kills.handle_of(CELL) is handle
    assert kills.handle_of(replace(CELL, round=1)) is None
    monkeypatch.chdir(tmp_path)
    assert kills.handle_of(CELL) is None, "another folder's cell of the same name"

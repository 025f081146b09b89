"""What is left behind when a launch's supervisor was killed, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pivotbench.files import write_json
from pivotbench.lease import release, sweep
from pivotbench.lease.state import Handle, LaunchOrder, read_record, write_handle


@pytest.mark.parametrize(("left_mib", "released"), [(4, True), (70_000, False)])
def test_a_swept_launch_is_released_only_when_its_gpu_memory_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left_mib: int, released: bool
) -> None:
    monkeypatch.setenv("PIVOTBENCH_LOCKS", str(tmp_path / "locks"))
    monkeypatch.setattr(release, "memory_used_mib", lambda uuids: dict.fromkeys(uuids, left_mib))
    monkeypatch.setattr(release, "MEMORY_SECONDS", 0.1)
    logs, folder = tmp_path / "logs", tmp_path / "locks" / "launches" / "abc"
    logs.mkdir()
    record = logs / "server-abc.json"
    order = LaunchOrder(
        *("abc", "cell", "1:1", "sglang", "python3", "model", {}, {}, 1),
        *(str(logs / "launch.log"), str(record), 60.0, 60.0),
    )
    write_json(folder / "order.json", vars(order))
    write_handle(
        folder, Handle("abc", "cell", "1:1", "1:1", "ready", devices=["GPU-1"], before_mib={"GPU-1": 0})
    )
    sweep.sweep_launch(folder)
    told = read_record(record)
    assert told is not None and told.released is released
    assert (told.memory["before_mib"], told.memory["after_mib"]) == ({"GPU-1": 0}, {"GPU-1": left_mib})

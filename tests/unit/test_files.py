"""Files that are whole or absent, and times that nobody can set back."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
from pathlib import Path

import pytest

from factory import stored_race
from pivotbench.damage import damaged_files
from pivotbench.errors import file_fault
from pivotbench.files import write_json
from pivotbench.results import later


def test_parts_of_killed_writers_go_with_the_next_write_and_those_of_living_ones_stay(tmp_path: Path) -> None:
    # The dead one's pid is taken again, by a process that lives.
    dead, living = tmp_path / f".a.json.{os.getppid()}.partial", tmp_path / ".a.json.7.partial"
    other = tmp_path / ".b.json.7.partial"
    for part in (dead, living, other):
        part.write_text("half")
    with living.open("rb+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        write_json(tmp_path / "a.json", {})
    assert [p.exists() for p in (dead, living, other)] == [False, True, True]


def test_a_writer_killed_in_the_middle_leaves_a_part_that_goes_while_nobody_has_buried_it(
    tmp_path: Path,
) -> None:
    writer = os.fork()
    if writer == 0:
        os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
        write_json(tmp_path / "a.json", {})
    os.waitid(os.P_PID, writer, os.WEXITED | os.WNOWAIT)  # a zombie from here on
    assert [path.suffix for path in tmp_path.iterdir()] == [".partial"]
    write_json(tmp_path / "a.json", {})
    os.waitpid(writer, 0)
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_a_failed_write_names_the_file_and_the_remedy_and_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.json"
    write_json(file, {"old": True})
    before = file.read_text()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space") as caught:
        write_json(file, {"old": False})
    assert file_fault(caught.value) == f"{file}: No space left on device: free some space and run again"
    assert file.read_text() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_a_fault_of_ours_is_no_fault_of_the_disk() -> None:
    assert file_fault(FileNotFoundError(errno.ENOENT, "No such file", "x")) is None
    assert file_fault(ValueError("no")) is None


def test_a_stage_ends_after_it_began_whatever_the_clock_says() -> None:
    assert later("2026-03-29T00:59:59.900+00:00", 1.25) == "2026-03-29T01:00:01.150+00:00"


def test_derived_files_that_are_json_and_no_more_are_damaged(tmp_path: Path) -> None:
    (tmp_path / "race").mkdir()
    race, decision = tmp_path / "race" / "backends.r1.json", tmp_path / "decision.json"
    whole = stored_race("backends", 1, ["a"])
    write_json(race, whole)
    decision.write_text('{"schema": "pivotbench/decision/4"}')
    assert damaged_files(tmp_path) == []
    for path in (race, decision):
        path.write_text("{}")
    assert damaged_files(tmp_path) == [race, decision]
    for key in ("next", "base", "log", "eliminated", "noise"):
        write_json(race, {name: value for name, value in whole.items() if name != key})
        assert race in damaged_files(tmp_path), f"readers ask a race for its {key}"

"""A disk that takes no more is one line that names the file; later a rerun ends with the same files."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from faults.leases import all_released, until
from faults.one_cell import OneCell
from faults.soak.files import content, difference
from pivotbench.results import STAGES


@pytest.fixture
def cell(folder: Path, monkeypatch: pytest.MonkeyPatch) -> OneCell:
    monkeypatch.chdir(folder)
    return OneCell(folder)


@pytest.fixture
def mounted(folder: Path) -> Iterator[Callable[..., None]]:
    """Mount something at a folder; it goes with the test, which is skipped where nothing can be mounted."""
    places: list[Path] = []

    def mount(place: Path, *options: str) -> None:
        place.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(["mount", *options, str(place)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"nothing can be mounted here: {done.stderr.strip() or 'mount failed'}")
        places.append(place)

    if shutil.which("mount") is None:
        pytest.skip("there is no mount command here")
    try:
        yield mount
        until(lambda: all_released(folder), 10.0)
    finally:
        for place in reversed(places):
            subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(ballast: Path) -> None:
    """Leave no space on the disk of ``ballast``."""
    stream = os.open(ballast, os.O_WRONLY | os.O_CREAT)
    with contextlib.suppress(OSError):
        while True:
            os.write(stream, bytes(4096))
    os.close(stream)


def refused(done: subprocess.CompletedProcess[str], file: Path, why: str) -> None:
    """The stage said in one line that it could not write ``file``."""
    assert done.returncode == 2, done.stderr
    [line] = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert str(file) in line and why in line and line.endswith("and run again")
    assert "Traceback" not in done.stderr


def test_a_full_disk_stops_any_stage_with_one_line_and_leaves_no_part(
    cell: OneCell, folder: Path, mounted: Callable[..., None]
) -> None:
    cell.run_all()
    undisturbed = content(cell.results)
    shutil.rmtree(folder / "results")
    mounted(folder / "results", "-t", "tmpfs", "-o", "size=2m", "tmpfs")
    ballast = folder / "results" / "ballast"
    for stage in STAGES:
        fill(ballast)
        done = cell.run(stage)
        assert done.returncode == 2, done.stderr
        refused(done, Path(cell.cell.folder), "No space left on device: free some space")
        assert not list(cell.results.glob(".*")) and not (cell.results / f"{stage}.json").exists()
        ballast.unlink()
        done = cell.run(stage)
        assert done.returncode == 0, done.stderr
    assert difference(content(cell.results), undisturbed) is None


def test_a_limit_of_file_sizes_is_told_as_such(cell: OneCell, folder: Path) -> None:
    done = cell.run("launch", limit_bytes=100)
    refused(done, folder / "locks", "File too large: raise the limit of file sizes")
    assert until(lambda: all_released(folder), 10.0)
    cell.run_all()


def test_read_only_results_are_told_and_nothing_is_left_running(
    cell: OneCell, folder: Path, mounted: Callable[..., None]
) -> None:
    results = folder / "results"
    mounted(results, "-t", "tmpfs", "-o", "size=2m", "tmpfs")
    subprocess.run(["mount", "-o", "remount,ro", str(results)], check=True)
    refused(cell.run("launch"), results, "Read-only file system: make it writable")
    assert until(lambda: all_released(folder), 10.0)
    subprocess.run(["mount", "-o", "remount,rw", str(results)], check=True)
    cell.run_all()


def test_a_full_lock_folder_is_told(cell: OneCell, folder: Path, mounted: Callable[..., None]) -> None:
    mounted(folder / "locks", "-t", "tmpfs", "-o", "size=64k", "tmpfs")
    (folder / "locks").chmod(0o1777)
    fill(folder / "locks" / "ballast")
    refused(cell.run("launch"), folder / "locks" / "launches", "No space left on device")
    (folder / "locks" / "ballast").unlink()
    cell.run_all()

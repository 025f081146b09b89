"""One finished small campaign, copied for every test that changes something about it."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pivotbench.lease.processes import marked_processes
from workflow.campaign import Folder, Run

# What a server may take to be gone whose run was killed.
RELEASE_SECONDS = 15.0


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Folder, Run]:
    """A campaign that ran to its end, and what its run said; processes of one test run share it."""
    here = tmp_path_factory.getbasetemp()
    root = here.parent if "PYTEST_XDIST_WORKER" in os.environ else here
    said = root / "finished.json"
    with (root / "finished.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not said.exists():
            run = Folder.create(root / "finished").snakemake("all")
            said.write_text(json.dumps([run.code, run.text, run.log]))
    run = Run(*json.loads(said.read_text()))
    assert run.code == 0, run.text
    return Folder(root / "finished"), run


@pytest.fixture
def campaign(finished: tuple[Folder, Run], tmp_path: Path) -> Folder:
    """A copy of the finished campaign, file times and Snakemake's records included."""
    path = tmp_path / "copy"
    shutil.copytree(finished[0].path, path, symlinks=True)
    return Folder(path)


@pytest.fixture
def fresh(tmp_path: Path) -> Folder:
    """A campaign that has not run yet."""
    return Folder.create(tmp_path / "fresh")


@pytest.fixture(autouse=True)
def nothing_leaks(tmp_path: Path) -> Iterator[None]:
    """After every test, no process of a server started below its folder is left, or for long after a kill."""
    yield
    deadline = time.monotonic() + RELEASE_SECONDS
    while left := [p for p, value in marked_processes().items() if str(tmp_path) in value]:
        assert time.monotonic() < deadline, f"left behind: {left}"
        time.sleep(0.1)


@pytest.fixture
def changed(campaign: Folder) -> Callable[[Callable[[dict], None]], Folder]:  # type: ignore[type-arg]
    """Change the study of a copy: ``changed(lambda study: ...)``."""

    def change(edit: Callable[[dict], None]) -> Folder:  # type: ignore[type-arg]
        study = campaign.study()
        edit(study)
        campaign.write(study)
        return campaign

    return change

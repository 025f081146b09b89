"""A folder of locks and records for each test, and the proof that nothing of it is left."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.leases import LEASED, RELEASE_SECONDS, ours, until
from pivotbench.lease.ensure import stop


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("PIVOTBENCH_LOCKS", str(tmp_path / "locks"))
    monkeypatch.setenv("PIVOTBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIVOTBENCH_TEST_PYTHON", sys.executable)
    yield tmp_path
    while LEASED:
        LEASED.pop().release()
    stop(grace_seconds=0.5)
    assert until(lambda: not ours(tmp_path), RELEASE_SECONDS)


@pytest.fixture
def other_owner() -> Iterator[subprocess.Popen[bytes]]:
    """A process that stands for another Snakemake run."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(120)"])
    yield process
    process.kill()
    process.wait()

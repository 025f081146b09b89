"""A short soak: kill points on one cell, each with a rerun that ends with the same files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_a_short_soak_comes_through(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "faults.soak", "--cells", "24", "--campaigns", "0", "--processes", "2"],
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": f"{ROOT / 'scripts'}:{ROOT / 'tests'}",
            "SOAK_SEED": "short",
            "TMPDIR": str(tmp_path),
        },
        text=True,
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].endswith("did not: 0")

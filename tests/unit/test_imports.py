"""What every start of a run, and every job on a cluster, loads: nothing that draws, tabulates or measures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Each takes a tenth of a second or more to load.
HEAVY = ("altair", "pandas", "pyarrow", "scipy", "numpy", "rich", "aiohttp")


def loaded_by(module: str) -> set[str]:
    """Return the packages that an interpreter has loaded after importing ``module``."""
    code = f"import {module}, json, sys; print(json.dumps(sorted(sys.modules)))"
    paths = os.pathsep.join([str(ROOT / "scripts"), str(ROOT / "workflow")])
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    return {name.partition(".")[0] for name in json.loads(run.stdout)}


def test_size_title_and_caption_of_a_chart_load_nothing_of_pages() -> None:
    assert "jinja2" not in loaded_by("pivotbench.charts.layout")


@pytest.mark.parametrize(
    "module",
    [
        "pivotbench.campaign",
        "pivotbench.plan",
        "pivotbench.report.inputs",
        "pivotbench.settled",
        "pivotbench.stages.context",
        "pivotbench.terminal.outcome",
        "bridge",
    ],
)
def test_a_start_loads_no_library_that_it_does_not_use(module: str) -> None:
    assert loaded_by(module).isdisjoint(HEAVY)

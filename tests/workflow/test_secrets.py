"""A campaign whose server tells a secret wherever it can leaves it in no file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet
import pytest

from workflow.campaign import Folder

SECRET = "correct-horse-battery-staple"


def everything_in(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield what every file below a folder holds, tables unpacked."""
    for path in folder.rglob("*"):
        if path.suffix == ".parquet":
            yield path, str(pyarrow.parquet.read_table(path).to_pylist())
        elif path.is_file():
            yield path, path.read_bytes().decode(errors="replace")


def test_a_key_of_the_environment_is_nowhere_after_a_campaign(
    fresh: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_LICENCE", SECRET)
    study = fresh.study()
    study["backends"] = {"good": {"attention-backend": "fa3", "script": ["leak=MY_LICENCE"]}}
    study["secrets"] = ["MY_LICENCE"]
    study["throughput"]["min_requests"] = 4
    del study["speculative"]
    fresh.write(study)
    run = fresh.snakemake("all")
    assert run.code == 0, run.text
    assert SECRET not in run.text
    cell = fresh.cell("good")
    told = dict(everything_in(fresh.path))
    assert [path for path, text in told.items() if SECRET in text] == []
    # It was told there, and taken out.
    for file in ("logs/launch.log", "smoke.json", "launch.json", "requests.parquet"):
        assert "[redacted]" in told[cell / file], file
    errors = pyarrow.parquet.read_table(cell / "requests.parquet", columns=["error"]).to_pylist()
    assert any("Bearer [redacted]" in row["error"] for row in errors if row["error"])

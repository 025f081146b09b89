"""Rows become the table that pyarrow itself would make of them, bit for bit, without pandas being loaded."""

from __future__ import annotations

import math
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pivotbench.arrow_table import arrow_table

SCRIPTS = Path(__file__).parents[2] / "scripts"
SCHEMA = pa.schema(
    [
        pa.field("text", pa.string(), nullable=False),
        pa.field("yes", pa.bool_()),
        pa.field("whole", pa.int64()),
        pa.field("real", pa.float64()),
        pa.field("reals", pa.list_(pa.float64())),
        pa.field("wholes", pa.list_(pa.int64())),
        pa.field("texts", pa.list_(pa.string())),
    ]
)
EDGES = {"text": "", "whole": 2**63 - 1, "real": -0.0, "reals": [], "wholes": [1], "texts": ["a", ""]}
ROWS: list[dict[str, Any]] = [
    {"yes": True, **EDGES},
    {"text": "naïve 😀\n", "yes": False, "whole": -(2**63), "real": math.inf, "reals": [0.1, None]},
    {"text": "x", "yes": None, "whole": None, "real": None, "reals": None, "wholes": [], "texts": ("b",)},
    {"text": "y", "real": 3, "reals": [1e-308, 2]},
]


def parquet(table: pa.Table) -> bytes:
    buffer = BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


@pytest.mark.parametrize("rows", [ROWS, ROWS[:1], ROWS * 5, []], ids=["some", "one", "many", "none"])
def test_rows_make_the_file_that_pyarrow_makes_of_them(rows: list[dict[str, Any]]) -> None:
    table = arrow_table(rows, SCHEMA)
    table.validate(full=True)
    assert parquet(table) == parquet(pa.Table.from_pylist(rows, schema=SCHEMA))


def test_not_a_number_stays_one() -> None:
    (value,) = arrow_table([{"x": math.nan}], pa.schema([pa.field("x", pa.float64())]))["x"]
    assert math.isnan(value.as_py())


@pytest.mark.parametrize(("kind", "value"), [(pa.int64(), 1.5), (pa.float64(), "1.5"), (pa.int64(), "1")])
def test_a_number_is_never_made_to_fit(kind: pa.DataType, value: Any) -> None:
    with pytest.raises(TypeError):
        arrow_table([{"x": value}], pa.schema([pa.field("x", kind)]))


def test_a_stage_that_writes_its_files_loads_no_pandas(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from pivotbench.telemetry.parquet import RunReadings, write_readings\n"
        "from pivotbench.telemetry.reading import Reading\n"
        "readings = [Reading(1.0, 'host', {'power_w': 9.0}, ('hot',))]\n"
        f"write_readings(Path({str(tmp_path)!r}) / 't.parquet', [RunReadings('w', 1, None, 0.0, readings)])\n"
        "sys.exit('pandas' in sys.modules)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(SCRIPTS)}, check=False)
    assert run.returncode == 0
    assert pq.read_table(tmp_path / "t.parquet").num_rows == 1

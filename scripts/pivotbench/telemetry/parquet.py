"""telemetry.parquet: every reading of a cell's runs, one row each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from pivotbench.files import sha256_of_file, write_bytes
from pivotbench.telemetry.reading import QUANTITIES, Reading


@dataclass(frozen=True)
class RunReadings:
    """The readings of one run. ``origin`` is the run's start on the monotonic clock."""

    workload: str
    concurrency: int | None
    rate_per_second: float | None
    origin: float
    readings: Sequence[Reading]


def write_readings(path: Path, runs: Sequence[RunReadings]) -> dict[str, Any]:
    """Write the readings, whole or not at all; return {path (its name), sha256, rows}.

    ``seconds`` count from the run's start, as in requests.parquet.
    """
    import pyarrow
    import pyarrow.parquet

    from pivotbench.arrow_table import arrow_table

    schema = pyarrow.schema(
        [
            pyarrow.field("workload", pyarrow.string(), nullable=False),
            pyarrow.field("concurrency", pyarrow.int64()),
            pyarrow.field("rate_per_second", pyarrow.float64()),
            pyarrow.field("seconds", pyarrow.float64(), nullable=False),
            pyarrow.field("device", pyarrow.string(), nullable=False),
            *(pyarrow.field(name, pyarrow.float64()) for name in QUANTITIES),
            pyarrow.field("throttle_reasons", pyarrow.list_(pyarrow.string())),
        ]
    )
    rows = [
        {
            "workload": run.workload,
            "concurrency": run.concurrency,
            "rate_per_second": run.rate_per_second,
            "seconds": reading.seconds - run.origin,
            "device": reading.device,
            **reading.values,
            "throttle_reasons": reading.reasons,
        }
        for run in runs
        for reading in run.readings
    ]
    buffer = BytesIO()
    pyarrow.parquet.write_table(arrow_table(rows, schema), buffer, compression="zstd")
    write_bytes(path, buffer.getvalue())
    return {"path": path.name, "sha256": sha256_of_file(path), "rows": len(rows)}

"""requests.parquet: every request of a cell, one row each."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from pivotbench.client.record import RequestRecord
from pivotbench.files import sha256_of_file, write_bytes

_TYPES = {
    "str": "string",
    "RequestStatus": "string",
    "Stop": "string",
    "bool": "bool",
    "int": "int64",
    "float": "float64",
    "list[float]": "list<float64>",
    "list[int]": "list<int64>",
}


def write_requests(path: Path, records: Sequence[RequestRecord]) -> dict[str, Any]:
    """Write the records, whole or not at all; return {path (its name), sha256, rows}."""
    import pyarrow
    import pyarrow.parquet

    kinds = {
        "string": pyarrow.string(),
        "bool": pyarrow.bool_(),
        "int64": pyarrow.int64(),
        "float64": pyarrow.float64(),
        "list<float64>": pyarrow.list_(pyarrow.float64()),
        "list<int64>": pyarrow.list_(pyarrow.int64()),
    }
    schema = pyarrow.schema(
        [
            pyarrow.field(
                field.name,
                kinds[_TYPES[str(field.type).removesuffix(" | None")]],
                nullable=str(field.type).endswith("| None"),
            )
            for field in dataclasses.fields(RequestRecord)
        ]
    )
    table = pyarrow.Table.from_pylist([vars(record) for record in records], schema=schema)
    buffer = BytesIO()
    pyarrow.parquet.write_table(table, buffer, compression="zstd")
    write_bytes(path, buffer.getvalue())
    return {"path": path.name, "sha256": sha256_of_file(path), "rows": len(records)}


def read_requests(path: Path) -> list[RequestRecord]:
    """Return the records in a requests.parquet."""
    import pyarrow.parquet

    return [RequestRecord(**row) for row in pyarrow.parquet.read_table(path).to_pylist()]

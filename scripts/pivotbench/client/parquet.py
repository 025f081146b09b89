"""requests.parquet: every request of a cell, one row each."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from pivotbench.client.record import RequestRecord
from pivotbench.errors import UserError
from pivotbench.files import sha256_of_file, write_bytes
from pivotbench.raw_files import altered
from pivotbench.redaction import redacted, redacted_log_line

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


def write_requests(
    path: Path, records: Sequence[RequestRecord], secrets: Sequence[str] = ()
) -> dict[str, Any]:
    """Write the records, whole or not at all, without these secrets; return {path (its name), sha256, rows}.

    What a server says of a failure is cleaned as its log is, of what looks like a key as well.
    """
    import pyarrow
    import pyarrow.parquet

    from pivotbench.arrow_table import arrow_table

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
    table = arrow_table((_row(record, secrets) for record in records), schema)
    buffer = BytesIO()
    pyarrow.parquet.write_table(table, buffer, compression="zstd")
    write_bytes(path, buffer.getvalue())
    return {"path": path.name, "sha256": sha256_of_file(path), "rows": len(records)}


def _row(record: RequestRecord, secrets: Sequence[str]) -> dict[str, Any]:
    error = record.error and redacted_log_line(record.error, secrets)
    return {**vars(record), "error": error, "text": redacted(record.text, secrets)}


def read_requests(folder: Path, recorded: Mapping[str, Any]) -> list[RequestRecord]:
    """Return a cell's records; ``recorded`` is what write_requests returned, as throughput.json keeps it.

    Raises UserError where the file is not the one that was written.
    """
    import pyarrow.parquet

    if fault := altered(folder, recorded):
        raise UserError(fault)
    table = pyarrow.parquet.read_table(folder / recorded["path"])
    return [RequestRecord(**row) for row in table.to_pylist()]

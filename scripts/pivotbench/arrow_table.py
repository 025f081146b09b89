"""Rows as Arrow tables, built of buffers.

pyarrow.array() would load pandas, a third of a second, to ask whether its argument is one of pandas' own.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence, Sized
from itertools import accumulate, chain
from typing import Any

import numpy as np
import pyarrow as pa

# Of array.array, which takes no value that it could not hold as it is.
_NUMBERS = {pa.int64(): "q", pa.float64(): "d"}
_IN_PLACE_OF_NULL = {pa.int64(): 0, pa.float64(): 0, pa.bool_(): False, pa.string(): ""}


def arrow_table(rows: Iterable[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Return rows of plain values as a table; what a row lacks is null, as None is.

    Columns hold strings, bools, int64, float64 or lists of these. Raises TypeError for what is no number of
    its column's kind, OverflowError for an integer beyond 64 bits.
    """
    kept = list(rows)
    columns = [_column([row.get(field.name) for row in kept], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    validity, items = None, []
    if None in values:
        validity = _bits([value is not None for value in values])
        values = [_IN_PLACE_OF_NULL.get(kind, ()) if value is None else value for value in values]
    buffers: list[bytes | array[int]]
    if kind in _NUMBERS:
        buffers = [array(_NUMBERS[kind], values)]
    elif kind == pa.bool_():
        buffers = [_bits(values)]
    elif kind == pa.string():
        texts = [value.encode() for value in values]
        buffers = [_offsets(texts), b"".join(texts)]
    else:
        buffers = [_offsets(values)]
        items = [_column(list(chain.from_iterable(values)), kind.value_type)]
    of_arrow = [buffer if buffer is None else pa.py_buffer(buffer) for buffer in (validity, *buffers)]
    return pa.Array.from_buffers(kind, len(values), of_arrow, children=items)


def _bits(flags: Sequence[bool]) -> bytes:
    return np.packbits(np.array(flags, bool), bitorder="little").tobytes()


def _offsets(parts: Iterable[Sized]) -> array[int]:
    return array("i", accumulate(map(len, parts), initial=0))

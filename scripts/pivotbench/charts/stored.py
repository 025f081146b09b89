"""Charts as they lie in their folder: an index of those that were drawn, each with its specification."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import BaseModel, Field, ValidationError

from pivotbench.charts.spec import Spec
from pivotbench.errors import UserError
from pivotbench.files import write_json

SUFFIXES = (".html", ".svg", ".png", ".json")
INDEX = "index.json"
INDEX_SCHEMA = "pivotbench/charts/1"


class _Entry(BaseModel):
    label: str
    variable: str
    shape: str
    hollow: bool


class _Table(BaseModel):
    headings: list[str]
    rows: list[list[str]]


class _Meta(BaseModel):
    finding: str
    caption: str
    legend: list[_Entry]
    table: _Table


class _Chart(BaseModel):
    usermeta: _Meta


class _Index(BaseModel):
    schema_: Literal["pivotbench/charts/1"] = Field(alias="schema")
    charts: list[str]


def write_index(folder: Path, names: Iterable[str]) -> None:
    """Say which charts belong into ``folder``."""
    write_json(folder / INDEX, {"schema": INDEX_SCHEMA, "charts": [*names]})


def read_charts(folder: Path) -> dict[str, Spec]:
    """Return the specifications of the charts that were drawn into ``folder``, by name; others are ignored.

    Raises UserError, one line, where a file of theirs is missing or lacks what a page takes of it, or where
    there is no index, as in folders of earlier versions.
    """
    names = _read(folder / INDEX, _Index)["charts"]
    for file in (folder / f"{name}{suffix}" for name in names for suffix in SUFFIXES):
        if not file.is_file():
            raise _not_whole(file, "missing")
    return {name: _read(folder / f"{name}.json", _Chart) for name in names}


def _read(file: Path, kind: type[BaseModel]) -> dict[str, Any]:
    try:
        value: dict[str, Any] = orjson.loads(file.read_bytes())  # a page takes no NaN, nor does orjson
        kind.model_validate(value, strict=True)
    except FileNotFoundError:
        raise _not_whole(file, "missing") from None
    except OSError as error:
        raise _not_whole(file, f"cannot be read: {error.strerror}") from None
    except ValidationError:
        raise _not_whole(file, "not what was written") from None
    except ValueError:
        raise _not_whole(file, "not JSON") from None
    return value


def _not_whole(file: Path, why: str) -> UserError:
    return UserError(f"{file.parent}: not whole ({file.name}: {why}); remove it and run again")

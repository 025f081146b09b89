"""The table of flags: what each configuration asked for, of which build, and what was done otherwise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from factory import ENVIRONMENT, Cell, cell_files
from pivotbench.evidence import CellFiles
from pivotbench.report.tables import Flags, flag_rows


def launched(name: str, version: str, flags: dict[str, Any], **launch: Any) -> CellFiles:
    environment = {**ENVIRONMENT, "engine": "sglang", "engine_version": version}
    made = cell_files(Cell("backends", name, 1, {("chat", 1): 100.0}, flags=flags, environment=environment))
    assert made.launch is not None
    return replace(made, launch={**made.launch, **launch})


def rows(*cells: CellFiles) -> dict[str, Flags]:
    return {row.configuration: row for row in flag_rows({"comparisons": [], "ranking": []}, cells)}


def test_versions_are_named_where_there_are_several() -> None:
    old, new = launched("old", "0.5.16", {"tp": 2}), launched("new", "0.5.23", {"tp": 2})
    assert [row.asked for row in rows(old, new).values()] == [("sglang 0.5.16",), ("sglang 0.5.23",)]
    assert rows(old)["old"].asked == ("tp 2",)


def test_what_the_server_did_otherwise_is_shown_and_its_defaults_are_not() -> None:
    def override(flag: str | None, requested: Any, effective: Any, *ranks: int) -> dict[str, Any]:
        return {"flag": flag, "requested": requested, "effective": effective, "ranks": list(ranks)}

    told = [
        override("page-size", 64, 1),
        override("tp", 2, 1, 1),
        override("chunked-prefill-size", None, 8192),
        override(None, None, "Max running requests is reset to 48"),
    ]
    row = rows(launched("a", "1", {"page-size": 64}, overrides=told))["a"]
    assert row.overridden == (
        "page-size: 64 → 1",
        "tp: 2 → 1 (rank 1)",
        "Max running requests is reset to 48",
    )


def test_a_deprecated_flag_is_shown_with_its_successor() -> None:
    deprecated = [{"flag": "cuda-graph-max-bs", "use": "--cuda-graph-max-bs-decode"}]
    row = rows(launched("a", "1", {"cuda-graph-max-bs": 8}, deprecated=deprecated))["a"]
    assert row.asked == (
        "cuda-graph-max-bs 8",
        "cuda-graph-max-bs is deprecated: use --cuda-graph-max-bs-decode",
    )

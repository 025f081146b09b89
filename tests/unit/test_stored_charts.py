"""Charts as they lie in their folder: whole as they were drawn, or named as what they lack."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pivotbench.charts.build import build_charts
from pivotbench.charts.spec import specifications
from pivotbench.charts.stored import SUFFIXES, read_charts, write_index
from pivotbench.damage import damaged_files
from pivotbench.errors import UserError
from pivotbench.files import write_text
from report_sample import sample

META = {
    "finding": "a leads",
    "caption": "By speed.",
    "legend": [{"label": "a", "variable": "hues-1", "shape": "dot", "hollow": False}],
    "table": {"headings": ["who"], "rows": [["a"]]},
}


@pytest.fixture
def charts(tmp_path: Path) -> Path:
    """A folder with one chart, as it is drawn."""
    folder = tmp_path / "charts"
    for suffix in SUFFIXES:
        write_text(folder / f"ranking{suffix}", json.dumps({"mark": "bar", "usermeta": META}))
    write_index(folder, ["ranking"])
    return folder


def test_every_chart_that_is_drawn_is_whole(tmp_path: Path) -> None:
    case = sample(tmp_path)
    drawn = specifications(build_charts(case.decision, case.measurements, case.cells))
    for name, spec in drawn.items():
        for suffix in SUFFIXES:
            write_text(tmp_path / "charts" / f"{name}{suffix}", json.dumps(spec))
    write_index(tmp_path / "charts", drawn)
    assert len(drawn) > 5
    assert read_charts(tmp_path / "charts") == json.loads(json.dumps(drawn))


def test_files_of_others_beside_charts_are_ignored(charts: Path) -> None:
    (charts / "ranking (1).html").write_text("a copy")
    (charts / "notes.json").write_text("{")
    assert [*read_charts(charts)] == ["ranking"]
    assert damaged_files(charts.parent) == []


def test_a_decision_without_charts_has_an_index_of_none_and_charts_never_drawn_are_not_damaged(
    tmp_path: Path,
) -> None:
    assert damaged_files(tmp_path) == []
    write_index(tmp_path / "charts", [])
    assert read_charts(tmp_path / "charts") == {}
    assert damaged_files(tmp_path) == []


@pytest.mark.parametrize("name", ["index.json", *(f"ranking{suffix}" for suffix in SUFFIXES)])
def test_a_file_that_is_missing_is_named(charts: Path, name: str) -> None:
    (charts / name).unlink()
    with pytest.raises(UserError, match=rf"charts: not whole \({name}: missing\); remove it and run again"):
        read_charts(charts)
    assert damaged_files(charts.parent) == [charts]


def lacking(key: str) -> str:
    return json.dumps({"usermeta": {name: value for name, value in META.items() if name != key}})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not JSON"),
        ('{"usermeta": {', "not JSON"),
        ("NaN", "not JSON"),
        (json.dumps({"usermeta": META, "width": float("nan")}), "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("\0" * 100, "not JSON"),
        *((text, "not what was written") for text in ("{}", "[]", "null", "7", '{"usermeta": []}')),
        *((lacking(key), "not what was written") for key in META),
        (json.dumps({"usermeta": META | {"table": {"headings": [], "rows": [1]}}}), "not what was written"),
    ],
)
def test_a_specification_that_no_page_can_take_is_named(charts: Path, text: str, why: str) -> None:
    (charts / "ranking.json").write_text(text)
    with pytest.raises(UserError, match=rf"charts: not whole \(ranking\.json: {why}\); remove it and run"):
        read_charts(charts)
    assert damaged_files(charts.parent) == [charts]


@pytest.mark.parametrize(
    "text", ["{", "null", "[]", "{}", '{"schema": "pivotbench/charts/1", "charts": [1]}']
)
def test_an_index_that_names_no_charts_is_damaged(charts: Path, text: str) -> None:
    (charts / "index.json").write_text(text)
    with pytest.raises(UserError, match=r"charts: not whole \(index\.json: "):
        read_charts(charts)


def test_a_file_in_place_of_the_folder_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "charts").write_text("")
    with pytest.raises(UserError, match=r"not whole \(index\.json: cannot be read: Not a directory\)"):
        read_charts(tmp_path / "charts")
    assert damaged_files(tmp_path) == [tmp_path / "charts"]

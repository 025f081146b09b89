"""Runs at a rate stand beside those at a concurrency and decide nothing: there the arrivals set the speed."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path

import pandas as pd
import pytest

from campaigns import DEMO_FLAGS, demo_cells, demo_rules, run_phase
from factory import Cell, cell_files
from pivotbench.charts.build import build_charts
from pivotbench.decision.decide import decide
from pivotbench.decision.loads.arrivals import sustained, under_arrivals
from pivotbench.evidence import CellFiles
from pivotbench.measurements import collect, rows
from pivotbench.summary.text import summary_markdown
from report_sample import page, sample


def with_open_loops(cell: CellFiles) -> CellFiles:
    """Return the cell with its first run repeated at two rates, faster than anything."""
    throughput = copy.deepcopy(cell.throughput)
    if throughput is None or not throughput.get("runs"):
        return cell
    for rate in (0.5, 2.0):
        run = copy.deepcopy(throughput["runs"][0])
        figures = {
            "arrivals_per_second": 0.9 * rate,
            "completed_per_second": 0.4 * cell.round,
            "in_flight": {"peak": 8 + cell.round},
            "unsustainable": rate > 1 and cell.round > 1,
        }
        run |= {"concurrency": None, "rate_per_second": rate, "open_loop": figures}
        for window in run["windows"]:
            window["output_tok_s"] *= 10
        throughput["runs"].append(run)
    return dataclasses.replace(cell, throughput=throughput)


def test_open_loops_are_rows_with_a_rate_and_without_a_concurrency(tmp_path: Path) -> None:
    case = sample(tmp_path)
    cells = [with_open_loops(cell) for cell in case.cells]
    frame = collect(cells)
    at_a_rate = frame[frame["rate_per_second"].notna()]
    assert set(at_a_rate["rate_per_second"]) == {0.5, 2.0} and at_a_rate["concurrency"].isna().all()
    pd.testing.assert_frame_equal(
        frame[frame["rate_per_second"].isna()].reset_index(drop=True), collect(case.cells)
    )
    assert len(rows(cells)) == len(frame)
    unsustainable = frame[frame["unsustainable"]]
    assert set(unsustainable["rate_per_second"]) == {2.0}
    assert set(unsustainable["in_flight_peak"]) == {10, 11}


def test_open_loops_change_no_decision() -> None:
    rules = demo_rules()
    races, cells = run_phase(rules, "backends", list(DEMO_FLAGS), demo_cells)
    base = races[-1]["base"]
    races, more = run_phase(rules, "speculative", [f"{base}+none", f"{base}+ngram-map-k"], demo_cells, races)
    cells += more
    with_rates = decide(rules, races, [with_open_loops(cell) for cell in cells])
    shown = with_rates.pop("open_loop")
    without = decide(rules, races, cells)
    assert without.pop("open_loop") == [] and with_rates == without
    assert {row["configuration"] for row in shown} == {row["configuration"] for row in without["ranking"]}


def test_rounds_are_pooled_to_their_medians_and_the_highest_peak_in_flight() -> None:
    cells = [with_open_loops(cell_files(Cell("backends", "a", n, {("chat", 1): 90.0}))) for n in (1, 2, 3)]
    below, above = under_arrivals(cells, [("backends", "a")])
    assert (below["rate_per_second"], above["rate_per_second"]) == (0.5, 2.0)
    assert above["completed_per_second"] == pytest.approx(0.8) and above["in_flight_peak"] == 11
    assert above["arrived_per_second"] == pytest.approx(1.8)
    assert (sustained(below), sustained(above)) == ("yes", "in 1 of 3 rounds")


def test_neither_the_broken_nor_rounds_limited_by_the_client_are_told_of() -> None:
    slow_client = Cell("backends", "a", 1, {("chat", 1): 90.0}, client_bound=True)
    out = Cell("backends", "b", 1, {("chat", 1): 90.0})
    cells = [with_open_loops(cell_files(cell)) for cell in (slow_client, out)]
    assert under_arrivals(cells, [("backends", "a")]) == []


def test_a_client_that_had_to_give_up_before_it_measured_is_a_rate_not_sustained() -> None:
    cell = with_open_loops(cell_files(Cell("backends", "a", 1, {("chat", 1): 90.0})))
    assert cell.throughput is not None
    for run in cell.throughput["runs"]:
        run["open_loop"] = None
    row = under_arrivals([cell], [("backends", "a")])[0]
    assert sustained(row) == "no" and row["completed_per_second"] is None


def test_report_and_summary_have_the_table_only_where_there_was_a_rate(tmp_path: Path) -> None:
    case = sample(tmp_path)
    without = {**case.decision, "open_loop": []}
    title = "Under a rate of arrivals"
    assert f"<h3>{title}</h3>" in page(case.decision, case.measurements, case.cells)
    assert title not in page(without, case.measurements, case.cells)
    text = summary_markdown(case.decision)
    assert f"<summary><b>{title}</b></summary>" in text
    assert "| free | 2 (1.92) | flash-off | 0.64 | 369 ms, 1.6 s | 21.6 s | 27 | in 1 of 3 rounds |" in text
    assert title not in summary_markdown(without)


def test_charts_show_the_same(tmp_path: Path) -> None:
    case = sample(tmp_path)
    cells = [with_open_loops(cell) for cell in case.cells]
    measurements = collect(cells)
    shown = {
        name: chart.to_dict() for name, chart in build_charts(case.decision, measurements, cells).items()
    }
    before = build_charts(case.decision, case.measurements, case.cells)
    assert shown == {name: chart.to_dict() for name, chart in before.items()}

"""Runs at a rate stand beside those at a concurrency and decide nothing: there the arrivals set the speed."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path

import pandas as pd

from campaigns import DEMO_FLAGS, demo_cells, demo_rules, run_phase
from pivotbench.charts import build_charts
from pivotbench.decision import decide
from pivotbench.evidence import CellFiles
from pivotbench.measurements import collect, rows
from report_sample import sample


def with_open_loops(cell: CellFiles) -> CellFiles:
    """Return the cell with its first run repeated at two rates, faster than anything."""
    throughput = copy.deepcopy(cell.throughput)
    if throughput is None or not throughput.get("runs"):
        return cell
    for rate in (0.5, 2.0):
        run = copy.deepcopy(throughput["runs"][0])
        figures = {"completed_per_second": 0.4, "in_flight": {"peak": 9}, "unsustainable": rate > 1}
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
    assert set(unsustainable["rate_per_second"]) == {2.0} and set(unsustainable["in_flight_peak"]) == {9}


def test_open_loops_change_no_decision() -> None:
    rules = demo_rules()
    races, cells = run_phase(rules, "backends", list(DEMO_FLAGS), demo_cells)
    base = races[-1]["base"]
    races, more = run_phase(rules, "speculative", [f"{base}+none", f"{base}+ngram-map-k"], demo_cells, races)
    cells += more
    assert decide(rules, races, [with_open_loops(cell) for cell in cells]) == decide(rules, races, cells)


def test_charts_show_the_same(tmp_path: Path) -> None:
    case = sample(tmp_path)
    cells = [with_open_loops(cell) for cell in case.cells]
    measurements = collect(cells)
    shown = {
        name: chart.to_dict() for name, chart in build_charts(case.decision, measurements, cells).items()
    }
    before = build_charts(case.decision, case.measurements, case.cells)
    assert shown == {name: chart.to_dict() for name, chart in before.items()}

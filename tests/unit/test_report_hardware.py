"""What the report says of power, clocks and temperature, and of servers that count drafts themselves."""

from __future__ import annotations

from typing import Any

from factory import Cell, cell_files
from pivotbench.evidence import CellFiles
from pivotbench.figures import NO_BREAK
from pivotbench.report.counted import counted_notes
from pivotbench.report.hardware import hardware_table

METRIC = {"workloads": {"chat": 1.0}, "concurrency": 1, "goodput": None}


def on_gpu(round_: int, *, clock: float, **telemetry: Any) -> CellFiles:
    cell = cell_files(Cell("backends", "a", round_, tok_s={("chat", 1): 50.0, ("chat", 4): 120.0}))
    assert cell.throughput is not None
    for run in cell.throughput["runs"]:
        run["telemetry"] |= {
            "aggregate": {
                "power_w": {"mean": 700.0},
                "sm_clock_mhz": {"mean": clock if run["concurrency"] == 1 else 1},
            },
            "energy_joules_per_output_token": 0.5,
            "throttle_reasons": {},
            **telemetry,
        }
    return cell


def test_rounds_are_averaged_over_the_metrics_own_runs() -> None:
    table = hardware_table(METRIC, [on_gpu(1, clock=1900.0), on_gpu(2, clock=1700.0)])
    assert table.headings == ("Power, W", "J/token", "Clock, MHz", "CPU, %")
    (row,) = table.rows
    assert row.figures == ("700", "0.500", "1,800", "97.0")
    assert (row.limits, row.throttled) == ("nothing", False)


def test_what_limited_the_clocks_is_named_with_its_share_of_the_time() -> None:
    hot = on_gpu(1, clock=1200.0, throttle_reasons={"sw_thermal_slowdown": 0.4}, throttled=True)
    (row,) = hardware_table(METRIC, [hot, on_gpu(2, clock=1900.0)]).rows
    assert (row.limits, row.throttled) == (f"sw thermal slowdown 20{NO_BREAK}%", True)


def test_on_a_machine_without_gpu_nothing_is_claimed_of_clocks() -> None:
    cell = cell_files(Cell("backends", "a", 1, tok_s={("chat", 1): 50.0}, throttled=None))
    table = hardware_table(METRIC, [cell])
    assert table.headings == ("CPU, %",)
    assert (table.rows[0].limits, table.rows[0].throttled) == ("not known", False)


def test_results_without_telemetry_give_no_rows() -> None:
    cell = cell_files(Cell("backends", "a", 1, tok_s={("chat", 1): 50.0}))
    assert cell.throughput is not None
    for run in cell.throughput["runs"]:
        run["telemetry"] = {"cpu_percent": 97.0}
    assert hardware_table(METRIC, [cell]).rows == ()


def drafting(round_: int, differs: bool | None) -> CellFiles:
    cell = cell_files(Cell("speculative", "a+ngram", round_, tok_s={("chat", 1): 50.0}))
    assert cell.throughput is not None
    cell.throughput["runs"][0]["acceptance"]["metrics"] = {"length": 2.0, "differs": differs}
    return cell


def test_one_round_in_which_the_server_counts_otherwise_is_told() -> None:
    load = ("a+ngram", "chat", 1)
    assert counted_notes([drafting(1, False), drafting(2, False)]) == {load: "confirmed"}
    assert counted_notes([drafting(1, False), drafting(2, True)]) == {load: "disputed"}
    assert counted_notes([drafting(1, None)]) == {}

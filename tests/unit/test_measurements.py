"""The measurements table and the cells it is made of."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from factory import GARBAGE, UNSUPPORTED, Cell, Drafts, cell_files, write_cell
from pivotbench.errors import UserError
from pivotbench.evidence import MEASURED, read_cell
from pivotbench.measurements import COLUMNS, DOCUMENT, collect, document, write
from pivotbench.results import Reason, write_stage

GOOD = Cell(
    "backends", "a", 1, tok_s={("chat", 1): 50.0, ("chat", 4): 120.0}, drafts={"chat": Drafts(500, 200)}
)


def test_a_row_is_a_window_and_windows_average_to_the_stated_speed() -> None:
    frame = collect([cell_files(GOOD)])
    assert list(frame.columns) == [c.name for c in COLUMNS]
    assert len(frame) == 6
    assert frame.groupby("concurrency")["output_tok_s"].mean().to_dict() == pytest.approx({1: 50.0, 4: 120.0})


@pytest.mark.parametrize(
    ("stage", "reason"), [("launch", UNSUPPORTED), ("smoke", GARBAGE), ("throughput", GARBAGE)]
)
def test_a_cell_that_failed_gives_no_rows(stage: str, reason: Reason) -> None:
    broken = Cell("backends", "b", 1, tok_s=GOOD.tok_s, failed=stage, reason=reason)  # type: ignore[arg-type]
    assert collect([cell_files(broken)]).empty


def test_a_table_without_evidence_keeps_its_types() -> None:
    assert collect([]).dtypes.to_dict() == collect([cell_files(GOOD)]).dtypes.to_dict()


def test_what_the_server_did_not_report_is_missing_not_zero() -> None:
    silent = Cell("backends", "c", 1, tok_s={("chat", 1): 50.0}, drafts={"chat": Drafts(None, None)})
    frame = collect([cell_files(silent)])
    assert frame["acceptance_length"].isna().all()
    assert frame["draft_proposed"].isna().all()


def test_the_server_that_throughput_used_is_the_rounds_server() -> None:
    cell = cell_files(GOOD)
    assert cell.throughput is not None and cell.launch is not None
    cell.throughput["server"]["launch_id"] = "relaunched"
    assert set(collect([cell])["launch_id"]) == {"relaunched"}
    assert cell.launch["server"]["launch_id"] != "relaunched"


def test_telemetry_is_of_the_gpus_where_there_are_any_and_of_the_machine_elsewhere() -> None:
    cell = cell_files(GOOD)
    assert cell.throughput is not None
    for run in cell.throughput["runs"]:
        run["telemetry"] |= {
            "throttled": True,
            "energy_joules_per_output_token": 0.5,
            "aggregate": {
                "power_w": {"mean": 700.0},
                "temperature_c": None,
                "sm_clock_mhz": {"mean": 1980.0},
            },
        }
    on_gpu, on_cpu = collect([cell]).iloc[0], collect([cell_files(GOOD)]).iloc[0]
    columns = ["throttled", "power_w", "sm_clock_mhz", "temperature_c", "energy_j_per_token", "cpu_percent"]
    assert on_gpu[columns].tolist() == [True, 700.0, 1980.0, pd.NA, 0.5, 97.0]
    assert on_cpu[columns].tolist() == [False, pd.NA, pd.NA, pd.NA, pd.NA, 97.0]


def test_throttling_that_is_not_known_is_missing_and_threatens_nothing() -> None:
    frame = collect([cell_files(replace(GOOD, throttled=None))])
    assert frame["throttled"].isna().all()


@pytest.mark.parametrize(
    ("speeds", "stalled"),
    # The first two as measured on SGLang, whose MoE kernels were compiled meanwhile.
    [
        ([524.8, 360.2, 88.5], True),
        ([0.0, 51.6, 202.5], True),
        ([731.0, 996.1, 1159.3], False),
        ([0, 0], False),
    ],
)
def test_a_run_that_stood_still_is_marked_unless_arrivals_are_random(
    speeds: list[float], stalled: bool
) -> None:
    cell = cell_files(GOOD)
    assert cell.throughput is not None
    run = cell.throughput["runs"][0]
    cell.throughput["runs"] = [run]
    run["windows"] = [{"window": n, "output_tok_s": speed} for n, speed in enumerate(speeds, 1)]
    assert set(collect([cell])["stalled"]) == {stalled}
    run |= {"rate_per_second": 4.0, "concurrency": None}
    assert set(collect([cell])["stalled"]) == {False}
    run["standstill"] = {"limit_seconds": 1.0, "times": 1, "seconds": 1.5}
    assert set(collect([cell])["stalled"]) == {True}, "with requests in flight it was not idle"


def test_how_often_the_measured_time_began_anew_is_missing_where_nobody_told() -> None:
    cell = cell_files(GOOD)
    assert cell.throughput is not None
    assert collect([cell])["restarts"].isna().all()
    for run in cell.throughput["runs"]:
        run["warmup"]["restarts"] = 1
    assert set(collect([cell])["restarts"]) == {1}


def test_files_carry_units_and_read_back_alike(tmp_path: Path) -> None:
    frame = collect([cell_files(GOOD)])
    write(frame, tmp_path / "m.parquet", tmp_path / "m.csv")
    metadata = json.loads(pq.read_schema(tmp_path / "m.parquet").metadata[b"pivotbench.columns"])
    assert metadata["output_tok_s"]["unit"] == "tokens/s"
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "m.parquet"), frame)
    assert pd.read_csv(tmp_path / "m.csv")["output_tok_s"].tolist() == frame["output_tok_s"].tolist()


def test_every_column_is_documented() -> None:
    assert all(f"| `{c.name}` |" in document() and c.meaning for c in COLUMNS)
    assert DOCUMENT.read_text() == document(), "run `make generated`"


def test_a_cell_is_read_from_its_folder_and_missing_stages_are_none(tmp_path: Path) -> None:
    folder = write_cell(tmp_path, "demo", GOOD)
    (folder / "teardown.json").unlink()
    cell = read_cell(folder)
    assert (cell.phase, cell.configuration, cell.round) == ("backends", "a", 1)
    assert cell.measured and cell.teardown is None


def test_only_the_stages_asked_for_are_read_and_settings_in_effect_are_kept_once(tmp_path: Path) -> None:
    folder = write_cell(tmp_path, "demo", replace(GOOD, effective={"page-size": 64}))
    cell = read_cell(folder, stages=MEASURED)
    assert cell.launch is not None and cell.smoke is None and cell.teardown is None
    assert cell.effective == {"page-size": 64} and "effective" not in cell.launch["server"]
    assert collect([cell]).equals(collect([read_cell(folder)]))


def test_a_folder_that_is_no_cell_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a cell"):
        read_cell(tmp_path / "round1")


def test_the_factory_writes_the_keys_that_stages_write(tmp_path: Path) -> None:
    write_stage(
        tmp_path / "launch.json",
        stage="launch",
        status="failed",
        fingerprint="f",
        cell={},
        started="s",
        ended="e",
        server=None,
        reason=UNSUPPORTED,
    )
    real = json.loads((tmp_path / "launch.json").read_text())
    made = cell_files(Cell("backends", "b", 1, failed="launch", reason=UNSUPPORTED)).launch
    assert made is not None
    assert list(made)[: len(real)] == list(real)
    assert made["reason"].keys() == real["reason"].keys()


def test_the_csv_is_as_pandas_writes_it(tmp_path: Path) -> None:
    odd = replace(GOOD, configuration='a,"b"\nc', unanswered=["two; and", "a comma, too"])
    plain = Cell("backends", "c", 1, tok_s={("chat", 1): 1e-7}, drafts={"chat": Drafts(None, None)})
    frame = collect([cell_files(odd), cell_files(plain)])
    write(frame, tmp_path / "m.parquet", tmp_path / "m.csv")
    assert (tmp_path / "m.csv").read_bytes().decode() == frame.to_csv(index=False, lineterminator="\n")


def test_a_spreadsheet_takes_no_text_for_a_formula(tmp_path: Path) -> None:
    cell = replace(GOOD, unanswered=["=HYPERLINK(1)"])
    frame = collect([cell_files(cell)])
    write(frame, tmp_path / "m.parquet", tmp_path / "m.csv")
    csv = (tmp_path / "m.csv").read_text()
    assert ",'=HYPERLINK(1)," in csv and ",=HYPERLINK" not in csv
    assert set(pq.read_table(tmp_path / "m.parquet")["unanswered"].to_pylist()) == {"=HYPERLINK(1)"}

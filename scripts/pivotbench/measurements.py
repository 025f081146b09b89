"""The measurements table: one row a time window, from the stage files of measured cells."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pivotbench.evidence import CellFiles
from pivotbench.files import write_bytes, write_text
from pivotbench.pace import STALLED_SHARE

if TYPE_CHECKING:
    import pandas as pd


DOCUMENT = Path(__file__).parents[2] / "docs" / "measurements.md"


@dataclass(frozen=True)
class Column:
    """One column: its name, pandas type, unit ("" for none) and meaning."""

    name: str
    dtype: str
    unit: str
    meaning: str


# Figures of a run stand in each of its windows; only output_tok_s belongs to the window itself.
COLUMNS = (
    Column("study", "string", "", "name of the study"),
    Column("phase", "string", "", "backends or speculative"),
    Column("configuration", "string", "", "name of the configuration"),
    Column("round", "int64", "", "relaunch of the configuration, from 1"),
    Column("launch_id", "string", "", "the server that was measured"),
    Column("workload", "string", "", "name of the workload"),
    Column("kind", "string", "", "text, or synthetic: random tokens, which cannot judge speculation"),
    Column("stop", "string", "", "where answers end: at their length, or at their natural end"),
    Column("concurrency", "Int64", "", "requests kept in flight; empty in an open loop"),
    Column("rate_per_second", "Float64", "1/s", "requests sent a second; empty in a closed loop"),
    Column("window", "int64", "", "time window within the run, from 1"),
    Column("output_tok_s", "float64", "tokens/s", "tokens received inside the window, over its length"),
    Column("ttft_p50_seconds", "float64", "s", "time to first token, median of the run"),
    Column("ttft_p99_seconds", "float64", "s", "time to first token, 99th percentile of the run"),
    Column("itl_p50_seconds", "float64", "s", "time between tokens, median of the run"),
    Column("tpot_p50_seconds", "float64", "s", "time per output token after the first, median of the run"),
    Column("tpot_mean_seconds", "float64", "s", "time per output token after the first, mean of the run"),
    Column("e2e_p50_seconds", "float64", "s", "time from sending to the last token, median of the run"),
    Column("e2e_p99_seconds", "float64", "s", "time from sending to the last token, 99th percentile"),
    Column("completed_per_second", "Float64", "1/s", "requests completed a second, at a rate"),
    Column("in_flight_peak", "Int64", "", "most requests in flight in the measured time, at a rate"),
    Column("unsustainable", "boolean", "", "the backlog grew: the server does not sustain the rate"),
    Column("prompt_tokens", "Int64", "tokens", "prompt tokens of the run by the server's count"),
    Column("cache_hit_rate", "Float64", "", "prompt tokens answered from the prefix cache, as a share"),
    Column("output_tokens", "Int64", "tokens", "output tokens of the run by the server's count"),
    Column("requests", "int64", "", "requests of the run that completed"),
    Column("requests_failed", "int64", "", "requests of the run that failed, fell short or timed out"),
    Column("unanswered", "string", "", "what failed whenever it was sent: the run is not ranked"),
    Column("acceptance_length", "Float64", "tokens", "output tokens per target forward pass in the run"),
    Column("acceptance_counted", "boolean", "", "the server counted its passes; otherwise they are derived"),
    Column("draft_proposed", "Int64", "tokens", "drafted tokens of the run; empty: not reported"),
    Column("draft_accepted", "Int64", "tokens", "drafted tokens that were accepted; empty: not reported"),
    Column("verify_steps", "Int64", "", "target forward passes of the run; empty: not reported"),
    Column("client_bound", "boolean", "", "the load generator, not the server, may have set the speed"),
    Column("restarts", "Int64", "", "times the measured time began anew after a standstill; empty: not told"),
    Column("stalled", "boolean", "", "no token for long, or a window gave less than a third of the fastest"),
    Column("throttled", "boolean", "", "heat or a power brake slowed a GPU in the run; empty: not known"),
    Column("power_w", "Float64", "W", "power of the server's GPUs, without one of the processors, mean"),
    Column("sm_clock_mhz", "Float64", "MHz", "clock of the GPUs' multiprocessors, mean of the run"),
    Column("memory_clock_mhz", "Float64", "MHz", "clock of the GPUs' memory, mean of the run"),
    Column("temperature_c", "Float64", "°C", "temperature of the GPUs, without one of the processors, mean"),
    Column("energy_j_per_token", "Float64", "J/token", "energy of that power's devices per output token"),
    Column("cpu_percent", "Float64", "%", "load of the whole machine, 100 when every core is busy, mean"),
    Column("simulated", "boolean", "", "acceptance of drafts was simulated by the server"),
    Column("speed_only", "boolean", "", "nobody judged the answers: the study asked for speed only"),
)


def rows(cells: Iterable[CellFiles]) -> list[dict[str, Any]]:
    """Return the table as dictionaries, sorted by cell, run and window.

    A cell whose throughput stage failed, was skipped or is missing gives no rows.
    """
    table = [row for cell in cells if cell.measured for row in _cell_rows(cell)]
    keys = ("phase", "configuration", "round", "workload", "concurrency", "rate_per_second", "window")
    return sorted(table, key=lambda row: tuple(row[key] or 0 for key in keys))


def collect(cells: Iterable[CellFiles]) -> pd.DataFrame:
    """Return the table with the columns and types of ``COLUMNS``; empty but typed without evidence."""
    import pandas as pd

    frame = pd.DataFrame(rows(cells), columns=[c.name for c in COLUMNS])
    return frame.astype({c.name: c.dtype for c in COLUMNS})


def write(frame: pd.DataFrame, parquet_path: Path, csv_path: Path) -> None:
    """Write the table as Parquet, its columns' units and meanings in the schema's metadata, and as CSV."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pandas(frame, preserve_index=False)
    described = {c.name: {"unit": c.unit, "meaning": c.meaning} for c in COLUMNS}
    metadata = {**(table.schema.metadata or {}), b"pivotbench.columns": json.dumps(described).encode()}
    buffer = BytesIO()
    pq.write_table(table.replace_schema_metadata(metadata), buffer)
    write_bytes(parquet_path, buffer.getvalue())
    write_text(csv_path, _csv(frame))


def _csv(frame: pd.DataFrame) -> str:
    """Return the table as CSV, column by column: pandas' own writer takes twice the time."""
    columns = []
    for column in COLUMNS:
        values = frame[column.name]
        told = values.astype(object).where(values.notna(), "").tolist()
        columns.append([_inert(text) for text in told] if column.dtype == "string" else told)
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([column.name for column in COLUMNS])
    writer.writerows(zip(*columns, strict=True))
    return text.getvalue()


def _inert(text: str) -> str:
    """Return text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def document() -> str:
    """Return docs/measurements.md: every column, its unit and meaning."""
    lines = [
        "# The measurements table",
        "",
        "`measurements.csv` and `measurements.parquet`: one row a sample, a time window of one workload at",
        "one concurrency (closed loop) or rate (open loop) in one cell. In an open loop TTFT and end-to-end",
        "run from the time a request was meant to be sent. Made from the code by `make generated`.",
        "",
        "| column | unit | meaning |",
        "|---|---|---|",
    ]
    return "\n".join(lines + [f"| `{c.name}` | {c.unit} | {c.meaning} |" for c in COLUMNS]) + "\n"


def _cell_rows(cell: CellFiles) -> list[dict[str, Any]]:
    assert cell.throughput is not None
    names = {
        "study": cell.throughput["cell"]["study"],
        "phase": cell.phase,
        "configuration": cell.configuration,
        "round": cell.round,
        "launch_id": cell.launch_id,
        "speed_only": bool(cell.throughput.get("speed_only", False)),
    }
    return [
        {**names, **columns, "window": w["window"], "output_tok_s": w["output_tok_s"]}
        for run, columns in ((run, _run_columns(run)) for run in cell.throughput["runs"])
        for w in run["windows"]
    ]


def _stalled(run: dict[str, Any]) -> bool:
    """Whether a server stood still, or under steady load nearly did; random arrivals may leave it idle."""
    speeds = [window["output_tok_s"] for window in run["windows"]] or [0.0]
    uneven = min(speeds) < STALLED_SHARE * max(speeds)
    stood_still = (run.get("standstill") or {}).get("times", 0) > 0
    return stood_still or (uneven and run.get("rate_per_second") is None)


def marks(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return why a run's speed may count for nothing: the load generator's limits, or requests unanswered."""
    return {
        "client_bound": bool((run.get("client") or {}).get("bound", False)),
        "unanswered": "; ".join(run.get("unanswered") or ()) or None,
    }


def _run_columns(run: dict[str, Any]) -> dict[str, Any]:
    def figure(metric: str, which: str) -> float | None:
        value: float | None = (run.get(metric) or {}).get(which)
        return value

    acceptance = run.get("acceptance") or {}
    open_loop = run.get("open_loop") or {}
    telemetry = run.get("telemetry") or {}
    host = telemetry.get("host") or {}
    devices = telemetry.get("aggregate") or host
    requests = run["requests"]
    return {
        "workload": run["workload"],
        "kind": run["kind"],
        "stop": run.get("stop", "length"),
        "concurrency": run["concurrency"],
        "rate_per_second": run.get("rate_per_second"),
        "ttft_p50_seconds": figure("ttft_seconds", "p50"),
        "ttft_p99_seconds": figure("ttft_seconds", "p99"),
        "itl_p50_seconds": figure("itl_seconds", "p50"),
        "tpot_p50_seconds": figure("tpot_seconds", "p50"),
        "tpot_mean_seconds": figure("tpot_seconds", "mean"),
        "e2e_p50_seconds": figure("e2e_seconds", "p50"),
        "e2e_p99_seconds": figure("e2e_seconds", "p99"),
        "completed_per_second": open_loop.get("completed_per_second"),
        "in_flight_peak": (open_loop.get("in_flight") or {}).get("peak"),
        "unsustainable": bool(open_loop.get("unsustainable", False)),
        "prompt_tokens": (run.get("prompt_tokens") or {}).get("server"),
        "cache_hit_rate": (run.get("prompt_tokens") or {}).get("hit_rate"),
        "output_tokens": run["output_tokens"].get("server"),
        "requests": requests["completed"],
        "requests_failed": sum(requests.get(k, 0) for k in ("failed", "short", "timeout")),
        "acceptance_length": acceptance.get("length"),
        "acceptance_counted": bool(acceptance.get("counted", False)),
        "draft_proposed": acceptance.get("proposed"),
        "draft_accepted": acceptance.get("accepted"),
        "verify_steps": acceptance.get("verify_steps"),
        **marks(run),
        "restarts": (run.get("warmup") or {}).get("restarts"),
        "stalled": _stalled(run),
        "throttled": telemetry.get("throttled"),
        "power_w": _mean(devices, "power_w"),
        "sm_clock_mhz": _mean(devices, "sm_clock_mhz"),
        "memory_clock_mhz": _mean(devices, "memory_clock_mhz"),
        "temperature_c": _mean(devices, "temperature_c"),
        "energy_j_per_token": telemetry.get("energy_joules_per_output_token"),
        "cpu_percent": _mean(host, "cpu_percent"),
        "simulated": bool(acceptance.get("simulated", False)),
    }


def _mean(device: dict[str, Any], quantity: str) -> float | None:
    value: float | None = (device.get(quantity) or {}).get("mean")
    return value


if __name__ == "__main__":
    write_text(DOCUMENT, document())

"""Cells whose runs have stated latencies at stated loads, as goodput needs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from factory import Cell, cell_files
from pivotbench.evidence import CellFiles


def run_at(
    load: float,
    tok_s: float,
    seconds: float | None,
    *,
    over: str = "concurrency",
    workload: str = "chat",
    sustained: bool = True,
    bound: bool = False,
    lost: int = 0,
) -> dict[str, Any]:
    """Return one run; each percentile of each latency is ``seconds``, None for that of a lost request."""
    percentiles = dict.fromkeys(("p50", "p90", "p95", "p99"), seconds)
    latencies = dict.fromkeys(("ttft_seconds", "tpot_seconds", "e2e_seconds"), percentiles)
    return {
        "workload": workload,
        "kind": "text",
        "concurrency": load if over == "concurrency" else None,
        "rate_per_second": load if over == "rate" else None,
        "open_loop": {"unsustainable": not sustained} if over == "rate" else None,
        "windows": [{"window": 1, "begin_seconds": 0.0, "end_seconds": 9.0, "output_tok_s": tok_s}],
        "requests": {"completed": 100, "failed": lost, "short": 0, "timeout": 0},
        "output_tokens": {"server": 1000},
        "all_requests": latencies,
        "client": {"bound": bound},
    }


def cell_of(name: str, round_: int, runs: Sequence[Mapping[str, Any]], phase: str = "backends") -> CellFiles:
    """Return a cell that measured these runs and nothing else."""
    cell = cell_files(Cell(phase, name, round_, {("chat", 1): 1.0}))
    assert cell.throughput is not None
    return replace(cell, throughput={**cell.throughput, "runs": list(runs)})

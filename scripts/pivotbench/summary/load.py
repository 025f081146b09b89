"""The part of summary.md that tells of loads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pivotbench.decision.loads.words import PARETO_CAPTION, crossing_words, place_words, standing_words
from pivotbench.summary.markdown import figure, latency, table, text

Row = Mapping[str, Any]


def by_load(decision: Row) -> str:
    """Return what to serve by load and where that changes; empty where one load was measured."""
    regions = decision["regions"]
    if len(regions["best"]) < 2:
        return ""
    lines = [
        f"| {text(place_words(row))}{' (decides)' if row['decides'] else ''} | "
        f"{text(row['configuration'])} | {row['mean_tok_s']:.1f} tok/s | {text(standing_words(row))} |"
        for row in regions["best"]
    ]
    changes = [f"- {text(crossing_words(row))}.\n" for row in regions["crossings"]]
    said = "".join(changes) or "No two of these are seen to change places with the load.\n"
    found = table(["load", "to serve", "mean", "standing"], lines)
    return f"{found}\n{said}\n{text(regions['statement'])}.\n"


def pareto_table(rows: Sequence[Row]) -> str:
    """Return the Pareto set of each workload; empty where one point is all there is of each."""
    if len(rows) <= len({row["workload"] for row in rows}):
        return ""
    per_gpu = any(row["output_tok_s_per_gpu"] is not None for row in rows)
    lines = [
        f"| {text(row['workload'])} | {text(row['configuration'])} | {row['concurrency']} | "
        f"{row['output_tok_s']:.1f} | {figure(row['output_tok_s_per_gpu']) + ' | ' if per_gpu else ''}"
        f"{row['tok_s_per_user']:.1f} | {latency(row['ttft_p99_seconds'])} |"
        for row in rows
    ]
    gpu = ["tok/s a GPU"] if per_gpu else []
    head = ["workload", "configuration", "concurrency", "output tok/s", *gpu, "tok/s a user", "TTFT p99"]
    return f"{PARETO_CAPTION}.\n\n{table(head, lines)}"

"""The sections of summary.md that are folded away: loads under a rate, answers, threats, the log."""

from __future__ import annotations

from collections.abc import Sequence

from pivotbench.decision.loads.arrivals import CAPTION, sustained
from pivotbench.summary.markdown import figure, latency, table, text
from pivotbench.summary.words import (
    Decision,
    Row,
    spent_words,
)


def open_loop(rows: Sequence[Row]) -> str:
    """Return what each configuration did under each rate of arrivals."""
    lines = [
        f"| {text(r['workload'])} | {r['rate_per_second']:g} ({figure(r['arrived_per_second'])}) | "
        f"{text(r['configuration'])} | {figure(r['completed_per_second'])}"
        f"{' (' + str(r['requests_lost']) + ' lost)' if r['requests_lost'] else ''} | "
        f"{latency(r['ttft_p50_seconds'])}, {latency(r['ttft_p99_seconds'])} | "
        f"{latency(r['e2e_p99_seconds'])} | {'' if r['in_flight_peak'] is None else r['in_flight_peak']} | "
        f"{sustained(r)} |"
        for r in rows
    ]
    head = [
        "workload",
        "requests/s asked for (arrived)",
        "configuration",
        "completed/s",
        "TTFT p50, p99",
        "end to end p99",
        "peak in flight",
        "sustained",
    ]
    return f"{CAPTION}.\n\n{table(head, lines)}" if lines else ""


def answers(part: Row) -> str:
    """Return how the answers of a phase agree with its reference's."""
    aside = ", ".join(f'"{text(ask)}"' for ask in part["set_aside"])
    lines = [
        f"| {text(row['configuration'])} | {row['equal']} of {row['prompts']} | "
        f"{' / '.join(str(row['departures'][kind]) for kind in ('near_tie', 'clear', 'unknown'))} | "
        f"{figure(row['distance_nats'])} | {row['steady']} of {part['prompts']} | "
        f"{row['greedy_text']['verdict'] if row['greedy_text'] else ''} |"
        for row in part["configurations"]
    ]
    head = [
        part["phase"],
        "same text",
        "left at a near tie / clearly / unknown how",
        f"distance, nats (bound {part['bound_nats']:g})",
        "the same in all launches",
        "greedy text",
    ]
    return f"{text(part['statement'])}.{f' Set aside: {aside}.' if aside else ''}\n\n{table(head, lines)}"


def bullets(rows: Sequence[Row], template: str) -> str:
    """Return a line for each row, by a template of its keys."""
    return "".join("- " + template.format(**{k: text(v) for k, v in row.items()}) + "\n" for row in rows)


def log(decision: Decision) -> str:
    """Return what was decided after which round, what it cost, and what the confidence means."""
    spent = decision["cost"]
    statement = text(decision["confidence"]["statement"])
    sweep = {key: spent[f"full_sweep_{key}"] for key in ("gpu_seconds", "server_seconds")}
    whole = f"every round for all: about {spent_words(sweep)}"
    cost = f"cost: {spent['launches']} launches, {spent_words(spent)}; {whole}"
    lines = [*decision["log"], cost]
    return "".join(f"- {text(line)}\n" for line in lines) + f"\n{statement}\n"

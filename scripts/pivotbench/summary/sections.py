"""The sections of summary.md that everybody reads: ranking, speculation, eliminated, next levers."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import indent

from pivotbench.decision.loads.words import largest_load_words
from pivotbench.summary.markdown import block, code, figure, table, text
from pivotbench.summary.words import (
    Decision,
    Row,
    against,
    compared_with,
    load_words,
    mean_words,
)


def ranking(decision: Decision) -> str:
    """Return a table for each phase, the fastest first."""
    tables = []
    goodput = bool(decision["metric"]["goodput"])
    for phase in dict.fromkeys(row["phase"] for row in decision["ranking"]):
        rows = [row for row in decision["ranking"] if row["phase"] == phase]
        reference = compared_with(decision, rows)
        lines = [
            f"| {text(row['configuration'])} | {mean_words(row)} | "
            + (f"{largest_load_words(row, decision['metric'])} | " if goodput else "")
            + f"{against(decision, row['configuration'], reference)} |"
            for row in rows
        ]
        load = ["largest load"] if goodput else []
        head = [phase, "mean (interval, rounds)", *load, f"against {text(reference)}"]
        tables.append(table(head, lines))
    return "\n".join(tables)


def speculation(rows: Sequence[Row]) -> str:
    """Return a line for each speculative configuration at each load."""
    lines = [
        f"| {text(row['configuration'])} | {text(load_words(row))} | {row['verdict']} | {_speedup(row)} | "
        f"{figure(row['acceptance_length'])} | {figure(row['step_cost_ratio'])}"
        f"{' (derived)' if row['derived'] and row['step_cost_ratio'] else ''} |"
        for row in rows
    ]
    head = ["configuration", "workload", "verdict", "times as fast", "tokens a pass", "cost of a pass"]
    return table(head, lines)


def why_speculation(rows: Sequence[Row]) -> str:
    """Return the reason of each of these verdicts."""
    lines = [f"- {text(row['configuration'])}, {text(load_words(row))}: {text(row['why'])}\n" for row in rows]
    return "".join(lines)


def eliminated(rows: Sequence[Row]) -> str:
    """Return each configuration that is out: why, what to do, and the lines that prove it."""
    lines = []
    for row in rows:
        links = "".join(f" ([{i}]({link}))" for i, link in enumerate(row["links"], 1))
        name, reason = text(row["configuration"]), text(row["reason"])
        lines.append(f"- {name}: `{row['code']}` at {row['stage']}, {reason}{links}")
        if remedy := row.get("remedy"):
            lines.append(f"  - What to do: {text(remedy)}")
        lines += [f"  - {code(line)}" for line in row["evidence"][:2]]
    return "\n".join(lines) + "\n" if lines else ""


def levers(rows: Sequence[Row]) -> str:
    """Return what to try next, each with the lines to add to the study."""
    parts = []
    for number, row in enumerate(rows, 1):
        begin = f"{number}. "
        said = f"**{text(row['lever'])}**: {text(row['because'])}. Refuted by: {text(row['refuted_by'])}."
        snippet = indent(block("yaml", row["snippet"].rstrip("\n")), " " * len(begin))
        parts.append(f"{begin}{said}\n\n{snippet}")
    return "\n".join(parts)


def _speedup(row: Row) -> str:
    if row["speedup"] is None:
        return ""
    interval = f" ({row['ci'][0]:.2f} to {row['ci'][1]:.2f})" if row["ci"] else ""
    return f"{row['speedup']:.2f}{interval}"

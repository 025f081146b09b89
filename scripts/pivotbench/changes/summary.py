"""compare.json for people: summary.md, and the lines for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pivotbench.changes.changelog import speed_words
from pivotbench.summary.markdown import block, figure, table, text

Row = Mapping[str, Any]
HEADINGS = {
    "What works": ("broke", "mended", "appeared", "vanished", "still_broken"),
    "Speed": ("together", "slower", "faster", "undecided", "not_comparable", "equivalent"),
    "Answers": ("answers",),
    "Environment": ("environment",),
    "Study": ("study",),
    "Flags": ("flags",),
}
MOST_LINES = 20


def terminal_summary(comparison: Row) -> str:
    """Return the changelog as plain lines, the gate last."""
    lines = [row["line"] for row in comparison["changelog"]]
    more = [f"... and {len(lines) - MOST_LINES} more in summary.md"] if len(lines) > MOST_LINES else []
    head = f"{comparison['old']['folder']} -> {comparison['new']['folder']}"
    gate = comparison["gate"]["reasons"]
    verdict = (
        "gate: passes" if not gate else f"gate: would fail, {len(gate)} reason{'s' if len(gate) > 1 else ''}"
    )
    return "\n  ".join([head, *lines[:MOST_LINES], *more, verdict]) + "\n"


def summary_markdown(comparison: Row) -> str:
    """Return summary.md in GitHub flavoured Markdown."""
    old, new = comparison["old"], comparison["new"]
    head = [row["line"] for row in comparison["changelog"] if row["kind"] == "winner"]
    parts = [
        f"# {text(old['folder'])} → {text(new['folder'])}\n",
        f"**{text(head[0])}**\n",
        _gate(comparison["gate"]),
    ]
    for heading, kinds in HEADINGS.items():
        lines = [row["line"] for row in comparison["changelog"] if row["kind"] in kinds]
        if lines:
            parts.append(f"## {heading}\n\n" + "".join(f"- {text(line)}\n" for line in lines))
    parts += [_by_load(comparison["speeds_by_load"]), _agreement(comparison["answers"])]
    if new["launch_command"] and new["launch_command"] != old["launch_command"]:
        parts.append("## Launch command now\n\n" + block("sh", new["launch_command"]))
    parts.append(f"## What this means\n\n{text(comparison['statement'])}\n")
    return "\n".join(part for part in parts if part)


def _gate(found: Row) -> str:
    if found["passed"]:
        return "`compare_gate` passes.\n"
    return "`compare_gate` fails:\n\n" + "".join(f"- {text(reason)}\n" for reason in found["reasons"])


def _by_load(rows: Sequence[Row]) -> str:
    lines = [
        f"| {text(row['configuration'])} | {text(row['workload'])} | {row['concurrency']} | "
        f"{text(speed_words(row))} |"
        for row in rows
    ]
    body = table(["configuration", "workload", "concurrency", "new against old"], lines)
    return f"## By workload and concurrency\n\n{body}" if body else ""


def _agreement(rows: Sequence[Row]) -> str:
    lines = [
        f"| {text(row['configuration'])} | {row['verdict']} | {row['equal']} of {row['prompts']} | "
        f"{' / '.join(str(row['departures'][kind]) for kind in ('near_tie', 'clear', 'unknown'))} | "
        f"{figure(row['distance_nats'])} | {figure(row['answer_distance_nats'])} |"
        for row in rows
    ]
    head = [
        "configuration",
        "answers",
        "same text",
        "left at a near tie / clearly / unknown how",
        "distance on continuations, nats",
        "distance on answers, nats",
    ]
    body = table(head, lines)
    return f"## Answers, new against old\n\n{body}" if body else ""

"""How far the winner is from the memory roofline, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pivotbench.summary.markdown import table, text

Limit = Mapping[str, Any]


def limit_sentence(limit: Limit) -> str:
    """Return one sentence on a limit that is known."""
    gpus = f"{limit['gpus']} x {limit['gpu']}" if limit["gpus"] > 1 else limit["gpu"]
    reached = f"{limit['configuration']} reaches {100 * limit['share']:.0f} % of what the memory of {gpus}"
    return f"{reached} allows, {limit['roofline_tok_s']:.0f} tok/s"


def limit_markdown(limit: Limit) -> str:
    """Return the section of summary.md: a sentence and a table, or why the limit is not known."""
    if limit["reason"] is not None:
        return f"How far this is from what memory bandwidth allows is not known: {text(limit['reason'])}.\n"
    lines = [
        f"| {text(row['workload'])} | {row['measured_tok_s']:.1f} | {row['roofline_tok_s']:.1f} | "
        f"{100 * row['share']:.0f} % | {row['bytes_per_pass'] / 1e9:.2f} | "
        f"{row['cache_bytes_per_pass'] / 1e9:.2f} | {row['tokens_per_pass']:.2f} |"
        for row in limit["by_workload"]
    ]
    head = ("workload", "tok/s", "roofline tok/s", "share", "GB a pass", "of it cache", "tokens a pass")
    return "\n".join(
        [
            f"{text(limit_sentence(limit))} ([{limit['bandwidth_gb_s']:g} GB/s each]({limit['source']})).\n",
            table(head, lines),
        ]
    )

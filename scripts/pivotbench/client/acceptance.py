"""How many tokens speculation gave for each pass of the target model, by what the answers report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pivotbench.client.record import RequestRecord


def acceptance(records: Sequence[RequestRecord]) -> dict[str, Any]:
    """Return the token-weighted acceptance over ok requests; all null where nothing was reported.

    Length = output tokens / target forward passes. Passes are the server's verify steps where it counts
    them (SGLang), over the requests that report them; else they are derived as output tokens minus
    accepted drafts, for every accepted draft saved one (llama.cpp, which reports nothing for an answer in
    which nothing was drafted: 0 there as soon as another answer of the run reports). per_position[k] is
    the share of steps that accepted at least k+1 drafts.
    """
    stepped = [r for r in records if r.verify_steps]
    drafted = stepped or (list(records) if any(r.draft_proposed is not None for r in records) else [])
    if not drafted:
        return dict.fromkeys(("length", "proposed", "accepted", "verify_steps", "per_position")) | {
            "counted": False
        }
    tokens = sum(r.output_tokens or 0 for r in drafted)
    accepted = sum(r.draft_accepted or 0 for r in drafted)
    steps = sum(r.verify_steps or 0 for r in stepped) if stepped else tokens - accepted
    return {
        "length": tokens / steps if tokens > 0 and steps > 0 else None,
        "proposed": total(r.draft_proposed for r in drafted),
        "accepted": total(r.draft_accepted for r in drafted),
        "verify_steps": steps,
        "per_position": _per_position([r.accept_histogram for r in drafted if r.accept_histogram]),
        "counted": bool(stepped),
    }


def _per_position(histograms: Sequence[Sequence[int]]) -> list[float] | None:
    depth = max((len(h) for h in histograms), default=0)
    totals = [sum(h[i] for h in histograms if i < len(h)) for i in range(depth)]
    steps = sum(totals)
    return [sum(totals[k:]) / steps for k in range(1, depth)] if steps else None


def total(counts: Iterable[int | None]) -> int | None:
    """Return the sum of what was reported; None where nothing was."""
    told = [count for count in counts if count is not None]
    return sum(told) if told else None

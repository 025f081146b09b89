"""Whether each configuration still gives the answers it gave: greedy texts and log probabilities.

The old folder's answers are the reference, judged as everywhere (agreement): a text that differs is no
reason by itself, for another kernel rounds otherwise.

disagree   it fails a prompt that it answered well before, or its log probabilities of the fixed continuations
           (or of what both answered) lie farther from the old ones than the study's bound
changed    the greedy text leaves the old one at no near tie on more prompts than the old one leaves itself
           between relaunches
same       neither
unknown    nothing in common can be told apart from rounding
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from pivotbench.agreement.departures import usual
from pivotbench.agreement.judgement import Held, hold
from pivotbench.agreement.phase import NEAR_TIE_BOUNDS
from pivotbench.agreement.reading import witnesses
from pivotbench.agreement.speculative import greedy_text, own_departures
from pivotbench.changes.folder import Results
from pivotbench.decision_rules import DecisionRules


def answer_changes(old: Results, new: Results) -> list[dict[str, Any]]:
    """Return one row for each configuration that answered in both folders."""
    found = []
    for phase in ("backends", "speculative"):
        before, after = (witnesses(c for c in each.cells if c.phase == phase) for each in (old, new))
        bound = _bound(new, phase)
        for name in sorted(before.keys() & after.keys()):
            held = hold(after[name], before[name], NEAR_TIE_BOUNDS * bound)
            own = own_departures(before[name], NEAR_TIE_BOUNDS * bound)
            found.append({"phase": phase, "configuration": name, **_row(held, own, bound)})
    return found


def _bound(results: Results, phase: str) -> float:
    tables = [part for part in results.decision["agreement"] if part["phase"] == phase]
    return float(tables[0]["bound_nats"]) if tables else DecisionRules.agreement_bound


def _row(held: Held, own: int, bound_nats: float) -> dict[str, Any]:
    kinds = Counter(usual(departures) for departures in held.departures.values())
    far = [
        (what, found.mean_nats)
        for what, found in (
            ("fixed continuations", held.distance),
            ("what both answered", held.answer_distance),
        )
        if found is not None and found.mean_nats > bound_nats
    ]
    prompts = len(held.departures)
    if held.failed:
        verdict = "disagree"
        why = f"fails {_asks(held.failed)}, which it answered well before"
    elif far:
        verdict = "disagree"
        what, nats = far[0]
        why = (
            f"log probabilities of {what} lie {nats:.2f} nats from the old ones; the bound is {bound_nats:g}"
        )
    else:
        verdict = str(greedy_text(held, own)["verdict"])
        apart = f"{kinds['clear']} of {prompts} prompts, {kinds['unknown']} more in an unknown way"
        why = f"leaves the old text at no near tie on {apart}; the old answers leave themselves on {own}"
        if kinds["equal"] == prompts:
            why = f"the same text on all {prompts} prompts"
        if not prompts:
            why = "no prompt was asked in both"
    return {
        "prompts": prompts,
        "equal": kinds["equal"],
        "departures": {kind: kinds[kind] for kind in ("near_tie", "clear", "unknown")},
        "distance_nats": held.distance.mean_nats if held.distance else None,
        "distance_tokens": held.distance.tokens if held.distance else 0,
        "answer_distance_nats": held.answer_distance.mean_nats if held.answer_distance else None,
        "answer_distance_tokens": held.answer_distance.tokens if held.answer_distance else 0,
        "bound_nats": bound_nats,
        "failed": list(held.failed),
        "verdict": verdict,
        "why": why,
    }


def _asks(failed: tuple[str, ...]) -> str:
    more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
    return f"{failed[0]!r}{more}"

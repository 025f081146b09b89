"""Whether speculation keeps the greedy text, beyond what a relaunch changes by itself.

Verified drafts give the very tokens that plain greedy decoding gives; only rounding may differ, for several
tokens are verified in one pass. So against the baseline's first answer to each prompt, let D be the prompts
on which most of a configuration's answers leave it at no near tie, U those on which how near it was is
unknown, and N those on which any of the baseline's own answers does either: it is relaunched in every round
and asked more than once. The text is ``changed`` where D > N, the ``same`` where D + U <= N, and ``unknown``
otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pivotbench.agreement.departures import Departure, departure, usual
from pivotbench.agreement.judgement import Held
from pivotbench.agreement.reading import Witness


def own_departures(baseline: Witness, near_tie_nats: float) -> int:
    """Return on how many prompts the baseline leaves its own first answer at no near tie: N."""
    return sum(
        any(departure(answers[0], said, near_tie_nats).kind in ("clear", "unknown") for said in answers[1:])
        for answers in baseline.answers.values()
    )


def greedy_text(held: Held, own: int) -> dict[str, Any]:
    """Return the verdict on one speculative configuration, with the figures behind it."""
    kinds = {ask: usual(departures) for ask, departures in held.departures.items()}
    clear, unknown = (sum(kind == wanted for kind in kinds.values()) for wanted in ("clear", "unknown"))
    if not kinds:
        verdict = "unknown"
    elif clear > own:
        verdict = "changed"
    else:
        verdict = "same" if clear + unknown <= own else "unknown"
    figures = f"leaves the baseline's text at no near tie on {clear} of {len(kinds)} prompts"
    also = f" and in an unknown way on {unknown}" if unknown else ""
    widest = _widest(held.departures)
    gap = f" (gap up to {widest:.2f} nats)" if widest is not None and clear else ""
    return {"verdict": verdict, "why": f"{figures}{gap}{also}; the baseline itself does so on {own}"}


def _widest(departures: Mapping[str, Sequence[Departure]]) -> float | None:
    gaps = [d.gap_nats for found in departures.values() for d in found if d.gap_nats is not None]
    return max(gaps, default=None)

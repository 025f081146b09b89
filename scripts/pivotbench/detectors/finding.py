"""What a detector says of a text: a figure, the threshold it is held against, and a verdict.

``bad`` is absolute: no working model writes that. ``suspect`` is what a broken backend writes and a weak
model may write too: a comparison with the reference configuration has to decide. Thresholds are cited where
a detector names a source; the others lie between what benchmarks/detectors measures on good and on broken
texts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "suspect", "bad"]


@dataclass(frozen=True)
class Finding:
    """One detector's figure for one text, the threshold it was held against, and the verdict."""

    name: str
    figure: float
    threshold: float
    verdict: Verdict


def verdict(*, suspect: bool, bad: bool = False) -> Verdict:
    """Return the graver of the verdicts that hold."""
    return "bad" if bad else "suspect" if suspect else "ok"

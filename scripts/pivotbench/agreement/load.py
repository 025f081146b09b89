"""Texts received under load, against those the reference gave under the same load.

Under load most answers are driven past their natural end, where weak models loop by themselves; suspect
texts count only where a configuration has more of them than the reference. What counts is prompts, not
texts: under greedy decoding a prompt that is sent again gives the same text again, and is no new evidence.
A configuration's best round stands against the reference's worst, so that no single launch decides. The
test is Fisher's exact one, one-sided; its level is divided over all that is tested in the phase
(Bonferroni).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import comb
from typing import Any

from pivotbench.evidence import CellFiles
from pivotbench.workloads import load_in_words

LEVEL = 0.001


@dataclass(frozen=True)
class Share:
    """So many of so many prompts had a suspect answer; ``first`` is one such text."""

    suspect: int
    prompts: int
    first: str = ""

    @property
    def value(self) -> float:
        """The share."""
        return self.suspect / self.prompts


@dataclass(frozen=True)
class Excess:
    """A configuration has more suspect texts under one load than the reference has."""

    configuration: str
    load: str
    detector: str
    own: Share
    reference: Share

    @property
    def message(self) -> str:
        """What was found, in words."""
        return (
            f"under load ({self.load}) the answers to {self.own.suspect} of {self.own.prompts} prompts "
            f"are suspect ({self.detector}), of the reference's {self.reference.suspect} of "
            f"{self.reference.prompts}"
        )


def excesses(cells: Iterable[CellFiles], reference: str) -> list[Excess]:
    """Return the worst excess of each configuration that has one, sorted by name."""
    shares = _shares(cells)
    ours = shares.pop(reference, {})
    tested = [
        Excess(name, load, detector, _best(rounds), worst)
        for name, by_place in sorted(shares.items())
        for (load, detector), rounds in sorted(by_place.items())
        if (worst := _worst(ours.get((load, detector), ()))) is not None
    ]
    found: dict[str, tuple[float, Excess]] = {}
    for excess in tested:
        chance = fisher(excess.own, excess.reference)
        if chance < LEVEL / len(tested) and chance < found.get(excess.configuration, (1.0, excess))[0]:
            found[excess.configuration] = chance, excess
    return [excess for _, excess in found.values()]


def fisher(own: Share, reference: Share) -> float:
    """Return the probability of at least so many suspect prompts of one's own, were both shares the same."""
    total, suspect = own.prompts + reference.prompts, own.suspect + reference.suspect
    ways = sum(
        comb(own.prompts, k) * comb(reference.prompts, suspect - k)
        for k in range(own.suspect, min(suspect, own.prompts) + 1)
    )
    return ways / comb(total, suspect)


Shares = dict[str, dict[tuple[str, str], list[Share]]]


def _shares(cells: Iterable[CellFiles]) -> Shares:
    """Return each round's shares by configuration, and by load and detector."""
    runs: dict[str, list[Mapping[str, Any]]] = {}
    for cell in cells:
        if cell.measured and cell.throughput is not None:
            runs.setdefault(cell.configuration, []).extend(cell.throughput["runs"])
    judged = {name: [run for run in found if _prompts(run)["inspected"]] for name, found in runs.items()}
    detectors = {d for found in judged.values() for run in found for d in _prompts(run)["suspect"]}
    shares: Shares = {}
    for name, found in judged.items():
        for run in found:
            first = (_prompts(run).get("first") or {}).get("text", "")
            for detector in detectors:
                share = Share(_prompts(run)["suspect"].get(detector, 0), _prompts(run)["inspected"], first)
                shares.setdefault(name, {}).setdefault((load_in_words(run), detector), []).append(share)
    return shares


def _prompts(run: Mapping[str, Any]) -> Mapping[str, Any]:
    return (run.get("answers") or {}).get("prompts") or {"inspected": 0, "suspect": {}}


def _best(rounds: Iterable[Share]) -> Share:
    return min(rounds, key=lambda share: share.value)


def _worst(rounds: Iterable[Share]) -> Share | None:
    return max(rounds, key=lambda share: share.value, default=None)

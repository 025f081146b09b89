"""Who is killed where, dealt from a shuffled deck, so that every aim comes as often as any other."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from faults.soak.processes import TARGETS
from pivotbench.results import STAGES, Stage


@dataclass(frozen=True)
class Aim:
    """Whom to kill: at the begin of a stage or in the middle of it; ``None``: before the first."""

    target: str
    stage: Stage | None
    at_begin: bool


EVERYWHERE = (
    Aim("run", None, True),
    *(Aim(target, stage, begin) for target in TARGETS for stage in STAGES for begin in (True, False)),
)


class Deck:
    """Deals aims; the same seed shuffles the same."""

    def __init__(self, seed: str) -> None:
        """Begin with one of everything."""
        self._draw = random.Random(f"{seed}/deck")
        self._aims: list[Aim] = []

    def deal(self, pending: Sequence[Stage]) -> Aim:
        """Return the next aim at one of the stages that are still to be made."""
        while True:
            for place, aim in enumerate(self._aims):
                if aim.stage is None or aim.stage in pending:
                    return self._aims.pop(place)
            self._aims += self._draw.sample(EVERYWHERE, len(EVERYWHERE))

"""How many cells a run may still meet, beyond those of the round it is in."""

from __future__ import annotations

from pivotbench.campaign import Campaign
from pivotbench.rounds import stored_rounds
from pivotbench.terminal.progress import Left


def left(campaign: Campaign, known: int, race: tuple[str, int] | None, *, alone: bool) -> Left:
    """Return the cells left, ``known`` of them in this round.

    ``race`` is the one that will judge the round, by phase and number; None where no race is to come. It may
    ask for another round of every cell it judges, those done long ago included. ``alone``: only the first
    phase was asked for. Reading the race before it raises UserError where it is damaged.
    """
    if race is None:
        return Left(known)
    phase, number = race
    rounds = campaign.study.decision.rounds
    contenders = len(stored_rounds(campaign).asked(phase, number))
    least = contenders * max(0, rounds.min - number)
    most = contenders * max(0, rounds.max - number)
    if phase == "backends" and "speculative" in campaign.phases and not alone:
        later = len(campaign.study.speculations) + 1  # the baseline runs beside them
        least, most = least + later * rounds.min, most + later * rounds.max
    return Left(known, least, most)

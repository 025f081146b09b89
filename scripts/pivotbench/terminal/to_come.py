"""How many cells a run may still meet, beyond those of the round it is in."""

from __future__ import annotations

from pivotbench.campaign import Campaign
from pivotbench.terminal.progress import Left


def left(campaign: Campaign, known: int, race: tuple[str, int, int] | None, *, alone: bool) -> Left:
    """Return the cells left, ``known`` of them in this round.

    ``race`` is the one that will judge the round: its phase, its round, and how many it judges; None where no
    race is to come. ``alone``: only the first phase was asked for.
    """
    if race is None:
        return Left(known)
    phase, number, contenders = race
    rounds = campaign.study.decision.rounds
    least = contenders * max(0, rounds.min - number)
    most = contenders * max(0, rounds.max - number)
    if phase == "backends" and "speculative" in campaign.phases and not alone:
        later = len(campaign.study.speculations) + 1  # the baseline runs beside them
        least, most = least + later * rounds.min, most + later * rounds.max
    return Left(known, least, most)

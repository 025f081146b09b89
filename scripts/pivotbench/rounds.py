"""How the races of a study hang together: which cells each one judges, and where a phase ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pivotbench.campaign import Campaign
from pivotbench.cells import Cell
from pivotbench.errors import UserError
from pivotbench.files import read_json
from pivotbench.results import PHASES

# What every reader relies on: without these a file of the name is no race.
RACE_KEYS = frozenset({"phase", "round", "evidence", "next", "ended", "base", "noise", "eliminated", "log"})

Race = dict[str, Any]
ReadRace = Callable[[str, int], Race | None]


class OutlivedError(UserError):
    """A stored race names configurations that the study no longer has run in its phase."""

    def __init__(self, path: Path, names: Iterable[str]) -> None:
        self.path, self.names = path, ", ".join(sorted(names))
        super().__init__(
            f"{path}: names {self.names}, which the study no longer runs: put it back, or run "
            "without frozen=true"
        )


@dataclass(frozen=True)
class Rounds:
    """The races of a campaign, read by ``read_race(phase, round)``; None where one is missing."""

    campaign: Campaign
    read_race: ReadRace

    def told(self, phase: str) -> list[Race]:
        """Return a phase's races in order, up to the one that ended it or the last there is."""
        races: list[Race] = []
        while not races or not races[-1]["ended"]:
            race = self.read_race(phase, len(races) + 1)
            if race is None:
                break
            races.append(race)
        return races

    def base(self) -> str | None:
        """Return the backend that speculation is tried on; None where no backend is healthy."""
        pinned = self.campaign.study.speculative_base
        if pinned is not None:
            return pinned
        races = self.told("backends")
        base: str | None = races[-1]["base"] if races else None
        return base

    def asked(self, phase: str, number: int) -> list[Cell]:
        """Return the cells of one round: all contenders first, then those the last race named."""
        if number > 1:
            before = self.read_race(phase, number - 1)
            return self.campaign.cells(phase, before["next"] if before else [], number)
        base = self.base() if phase == "speculative" else None
        return self.campaign.cells(phase, self.campaign.contenders(phase, base), 1)

    def before(self, phase: str, number: int) -> list[str]:
        """Return the race files that a race is judged with: the last one, or those of phase one."""
        if number > 1:
            return [str(self.campaign.race_file(phase, number - 1))]
        return self.race_files(p for p in self.campaign.phases if PHASES.index(p) < PHASES.index(phase))

    def race_files(self, phases: Iterable[str]) -> list[str]:
        """Return the race files of some phases, in order."""
        return [
            str(self.campaign.race_file(phase, number))
            for phase in phases
            for number in range(1, len(self.told(phase)) + 1)
        ]

    def evidence(self) -> list[Cell]:
        """Return every cell that a race judged; other files on disk are not evidence."""
        return [
            self.campaign.cell(phase, entry["configuration"], number)
            for phase in self.campaign.phases
            if (races := self.told(phase))
            for entry in races[-1]["evidence"]
            for number in entry["rounds"]
        ]


def stored_rounds(campaign: Campaign) -> Rounds:
    """Return the races as they lie on disk; reading one that is damaged or outlived raises UserError."""

    def read(phase: str, number: int) -> Race | None:
        path = campaign.race_file(phase, number)
        try:
            race: Race | None = read_json(path) if path.is_file() else None
        except (ValueError, RecursionError):
            raise UserError(f"{path}: not JSON: remove it and run again without frozen=true") from None
        if race is None:
            return None
        if not (isinstance(race, dict) and race.keys() >= RACE_KEYS):
            raise UserError(f"{path}: no race: remove it and run again without frozen=true")
        base = rounds.base() if phase == "speculative" else None
        named = {*(entry["configuration"] for entry in race["evidence"]), *race["next"]}
        if gone := named.difference(campaign.contenders(phase, base)):
            raise OutlivedError(path, gone)
        return race

    rounds = Rounds(campaign, read)
    return rounds


def outlived_races(campaign: Campaign) -> dict[Path, str]:
    """Return the first race of each phase that names what the study no longer runs, and whom."""
    stored, found = stored_rounds(campaign), {}
    for phase in campaign.phases:
        try:
            stored.told(phase)
        except OutlivedError as fault:
            found[fault.path] = fault.names
        except UserError:
            continue  # made anew as damaged
    return found


def standing_races(campaign: Campaign, holds: Callable[[Cell], bool]) -> frozenset[Path]:
    """Return the stored races whose cells all hold, up to the first that has one to be made or made anew.

    What they ask for is there, so they may be read before it is known whether they are to be judged anew.
    """
    stored = stored_rounds(campaign)
    standing: set[Path] = set()
    for phase in campaign.phases:
        try:
            told = stored.told(phase)
        except UserError:  # a job of a run that makes it anew
            break
        for number in range(1, len(told) + 1):
            if not all(map(holds, stored.asked(phase, number))):
                return frozenset(standing)
            standing.add(campaign.race_file(phase, number))
    return frozenset(standing)


def base_memory(campaign: Campaign) -> Path:
    """Return where the base of phase two is remembered from run to run."""
    return campaign.results / "race" / "base.json"


def remembered_base(campaign: Campaign) -> str | None:
    """Return the base of phase two in earlier runs, None where none is remembered, or no longer readable."""
    try:
        base: str | None = read_json(base_memory(campaign))["base"]
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return base

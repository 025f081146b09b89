"""What the hardware did while configurations were measured: where it differed, a comparison is doubtful."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

CLOCK_DIFFERS = 0.02  # relative; a GPU's speed follows its clock
TEMPERATURE_DIFFERS_C = 5.0  # leakage and the fans' regime change with it


@dataclass(frozen=True)
class Conditions:
    """Means over a configuration's rounds; None where no sensor told.

    ``throttled``: in how many rounds, of how many that told.
    """

    throttled: tuple[int, int] | None = None
    sm_clock_mhz: float | None = None
    temperature_c: float | None = None

    def unlike(self, other: Conditions) -> tuple[str, ...]:
        """Return what differs enough to doubt a comparison with ``other``, this one's figure first."""
        found = []
        if self.throttled and other.throttled and bool(self.throttled[0]) != bool(other.throttled[0]):
            shares = [f"{hot} of {all_} rounds" for hot, all_ in (self.throttled, other.throttled)]
            found.append(f"throttled: {' | '.join(shares)}")
        clocks = (self.sm_clock_mhz, other.sm_clock_mhz)
        if clocks[0] and clocks[1] and abs(clocks[0] / clocks[1] - 1) > CLOCK_DIFFERS:
            found.append(f"sm_clock_mhz: {clocks[0]:.0f} | {clocks[1]:.0f}")
        mine, theirs = self.temperature_c, other.temperature_c
        if mine is not None and theirs is not None and abs(mine - theirs) > TEMPERATURE_DIFFERS_C:
            found.append(f"temperature_c: {mine:.0f} | {theirs:.0f}")
        return tuple(found)


def conditions(rows: Iterable[Mapping[str, Any]]) -> dict[str, Conditions]:
    """Return for each configuration in ``rows`` (measurements of one phase) what its hardware did."""
    by_configuration: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_configuration.setdefault(row["configuration"], []).append(row)
    return {name: _of(found) for name, found in by_configuration.items()}


def _of(rows: Sequence[Mapping[str, Any]]) -> Conditions:
    hot: dict[int, bool] = {}
    for row in rows:
        if row["throttled"] is not None:
            hot[row["round"]] = hot.get(row["round"], False) or row["throttled"]
    return Conditions(
        throttled=(sum(hot.values()), len(hot)) if hot else None,
        sm_clock_mhz=_mean(rows, "sm_clock_mhz"),
        temperature_c=_mean(rows, "temperature_c"),
    )


def _mean(rows: Sequence[Mapping[str, Any]], column: str) -> float | None:
    told = [row[column] for row in rows if row[column] is not None]
    return mean(told) if told else None

"""What the hardware did while configurations were measured: where it differed, a comparison is doubtful."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

CLOCK_DIFFERS = 0.02  # relative; a GPU's speed follows its clock
TEMPERATURE_DIFFERS_C = 5.0  # leakage and the fans' regime change with it
# The margin within which a study by default calls two equal: a clock apart by more can be all the difference.
CLOCK_DECIDES = 0.05


@dataclass(frozen=True)
class Conditions:
    """Means over a configuration's rounds; None where no sensor told.

    ``throttled``: in how many rounds, of how many that told.
    """

    throttled: tuple[int, int] | None = None
    sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    temperature_c: float | None = None

    def unlike(self, other: Conditions) -> tuple[str, ...]:
        """Return what differs enough to doubt a comparison with ``other``, this one's figure first."""
        found = []
        if self.throttled and other.throttled and bool(self.throttled[0]) != bool(other.throttled[0]):
            found.append(f"throttled: {self._hot} | {other._hot}")
        for name in ("sm_clock_mhz", "memory_clock_mhz"):
            one, another = getattr(self, name), getattr(other, name)
            if _apart(one, another) > CLOCK_DIFFERS:
                found.append(f"{name}: {one:.0f} | {another:.0f}")
        mine, theirs = self.temperature_c, other.temperature_c
        if mine is not None and theirs is not None and abs(mine - theirs) > TEMPERATURE_DIFFERS_C:
            found.append(f"temperature_c: {mine:.0f} | {theirs:.0f}")
        return tuple(found)

    def unfair_to(self, other: Conditions) -> str | None:
        """Return why the hardware alone may have made the difference, or None.

        One was throttled in most of its rounds, the other in fewer than half, and their clocks are more than
        CLOCK_DECIDES apart; or their memory clocks are, which set the pace of decoding.
        """
        if _apart(self.memory_clock_mhz, other.memory_clock_mhz) > CLOCK_DECIDES:
            return f"memory clocks of {self.memory_clock_mhz:.0f} and {other.memory_clock_mhz:.0f} MHz"
        if self._mostly_hot is None or other._mostly_hot is None or self._mostly_hot == other._mostly_hot:
            return None
        if _apart(self.sm_clock_mhz, other.sm_clock_mhz) <= CLOCK_DECIDES:
            return None
        return (
            f"one was throttled ({self._hot} against {other._hot}), at clocks of "
            f"{self.sm_clock_mhz:.0f} and {other.sm_clock_mhz:.0f} MHz"
        )

    @property
    def _hot(self) -> str:
        hot, all_ = self.throttled or (0, 0)
        return f"{hot} of {all_} rounds"

    @property
    def _mostly_hot(self) -> bool | None:
        return None if self.throttled is None else 2 * self.throttled[0] > self.throttled[1]


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
        memory_clock_mhz=_mean(rows, "memory_clock_mhz"),
        temperature_c=_mean(rows, "temperature_c"),
    )


def _mean(rows: Sequence[Mapping[str, Any]], column: str) -> float | None:
    told = [row[column] for row in rows if row[column] is not None]
    return mean(told) if told else None


def _apart(one: float | None, other: float | None) -> float:
    return abs(one / other - 1) if one and other else 0.0

"""How far an axis reaches: to all that was measured, and along intervals as long as they leave it legible."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# An interval of few launches may be a thousand times as wide as all that was measured.
MOST_BEYOND = 2.0  # times the extent of what was measured, on either side of it
CUT = " Intervals too wide for the picture are cut; the table has them."
Ends = Sequence[float] | None


@dataclass(frozen=True)
class Reach:
    """The ends of what is drawn; ``note``: to be said in the caption, empty where no interval is cut."""

    low: float
    high: float
    note: str

    @classmethod
    def of(cls, measured: Iterable[float], intervals: Iterable[Ends]) -> Reach:
        """Return the reach over ``measured``, at least one value, and intervals, None for none."""
        values = list(measured)
        ends = [end for interval in intervals if interval for end in interval]
        low, high = min(values), max(values)
        beyond = MOST_BEYOND * ((high - low) or abs(high))
        wanted = min([low, *ends]), max([high, *ends])
        kept = max(wanted[0], low - beyond), min(wanted[1], high + beyond)
        return cls(*kept, CUT if kept != wanted else "")

    def within(self, interval: Ends) -> tuple[float, float] | tuple[None, None]:
        """Return an interval's ends as they are drawn."""
        if not interval:
            return None, None
        low, high = (min(max(end, self.low), self.high) for end in interval)
        return low, high

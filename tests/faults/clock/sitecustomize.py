"""A wall clock that is set five hours ahead and back again every fifth of a second.

It stands on the PYTHONPATH of what a test starts. The monotonic clock goes on as ever, as on a real machine.
"""

from __future__ import annotations

import datetime
import time

from pivotbench import results

JUMP_SECONDS, EVERY_SECONDS = 5 * 3600, 0.2
REAL_SECONDS, REAL_NANOSECONDS = time.time, time.time_ns


def _ahead() -> int:
    return JUMP_SECONDS * (int(time.monotonic() / EVERY_SECONDS) % 2)


class Datetime(datetime.datetime):
    """A datetime whose present is that of this clock; libraries in C cannot be given it."""

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Datetime:
        """Return the present."""
        return super().now(tz) + datetime.timedelta(seconds=_ahead())


results.datetime = Datetime  # type: ignore[misc]
time.time = lambda: REAL_SECONDS() + _ahead()
time.time_ns = lambda: REAL_NANOSECONDS() + _ahead() * 10**9

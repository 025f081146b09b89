"""Whether the client itself was the limit: how late its event loop woke up, against the token gap."""

from __future__ import annotations

import asyncio

from pivotbench.client.percentiles import percentile

SAMPLE_SECONDS = 0.01
# The event loop rounds a timer up to a whole millisecond. That delays our sample and no token: a socket that
# becomes readable wakes the loop at once.
TIMER_SECONDS = 0.001

# A token's time is the kernel's and does not move with the client; what a late client delays is the next
# request, while the server goes on generating. A lag of one token gap therefore costs an n-token request at
# most 1/n of its rate, also if it were the rule instead of one sample in a hundred. Past it two tokens of a
# stream wait to be read together, of which only the second one's time is known. The bound is relative to the
# gap, because a machine with few cores wakes every process a few milliseconds late, which hurts a 3 ms gap
# and not a 20 ms one.
BOUND_FRACTION = 1.0


class LagSampler:
    """Sleeps for SAMPLE_SECONDS again and again and keeps how much longer it took than a timer may.

    ``samples`` holds (seconds on the loop's clock, lag in seconds).
    """

    def __init__(self) -> None:
        self.samples: list[tuple[float, float]] = []

    async def run(self) -> None:
        """Sample until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + SAMPLE_SECONDS
            await asyncio.sleep(SAMPLE_SECONDS)
            now = loop.time()
            self.samples.append((now, max(0.0, now - due - TIMER_SECONDS)))

    def p99_seconds(self, begin: float, end: float) -> float | None:
        """Return the 99th percentile of the lag from ``begin`` to ``end`` on the loop's clock."""
        return percentile([lag for at, lag in self.samples if begin < at <= end], 99)


def is_client_bound(lag_p99_seconds: float | None, token_gap_seconds: float | None) -> bool:
    """Return whether the lag exceeds BOUND_FRACTION of the token gap; False where one is unknown."""
    if lag_p99_seconds is None or not token_gap_seconds:
        return False
    return lag_p99_seconds > BOUND_FRACTION * token_gap_seconds

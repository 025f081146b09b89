"""When a server has warmed up: the stated test.

Warm-up requests are short and go out until the server's rate has settled. One reading is the mean rate,
in tokens a second of one stream, of as many requests as are in flight together. The server is warm once the
last two readings are within TOLERANCE of each other; the time is up, warm or not, after the longer of
the measured time asked for and WARM_UP_CAP_SECONDS (pace.py).
"""

from __future__ import annotations

from pivotbench.pace import warm_up_cap_seconds

TOLERANCE = 0.10
TOKENS_SHARE = 0.25
TOKENS_LEAST = 8


def warmup_tokens(output_tokens: int) -> int:
    """Return how long a warm-up answer is, for a workload whose answers are ``output_tokens`` long."""
    return min(output_tokens, max(TOKENS_LEAST, round(output_tokens * TOKENS_SHARE)))


class WarmUp:
    """Takes the rates of warm-up requests; ``size`` of them, as many as are in flight, make a reading."""

    def __init__(self, size: int, measured_seconds: float) -> None:
        self.requests = 0
        self.stable = False
        self._size = size
        self._cap_seconds = warm_up_cap_seconds(measured_seconds)
        self._rates: list[float] = []

    def take(self, tok_s: float, at_seconds: float) -> bool:
        """Take one request's rate, ended ``at_seconds`` into the run; return whether the warm-up is over."""
        size, rates = self._size, self._rates
        rates.append(tok_s)
        self.requests += 1
        if self.requests >= 2 * size and self.requests % size == 0:
            last, before = sum(rates[-size:]), sum(rates[-2 * size : -size])
            self.stable = abs(last - before) <= TOLERANCE * max(last, before)
        return self.stable or (at_seconds >= self._cap_seconds and self.requests >= size)

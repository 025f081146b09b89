"""How long loads last: what the client keeps to, and what plans and time limits are reckoned with.

Every estimate of a stage's time comes from here. What depends on the server's speed is bounded by the pace of
a slow one, by what people read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

SLOW_TOKEN_SECONDS = 0.1
# What a slow server reads of a prompt in a second, in tokens.
SLOW_PROMPT_TOKENS_PER_SECOND = 1000.0
# A request that is silent for so long is given up, and with it the stage.
STALL_SECONDS = 60.0

# How long a load waits at most for a server that is still at work on the one before.
IDLE_WAIT_SECONDS = 10.0
WARM_UP_CAP_SECONDS = 1.5
# A server that works at all varies less between windows; one that compiles kernels meanwhile gives nothing.
STALLED_SHARE = 1 / 3
# Servers on a busy machine, and clients too, pause for less.
STANDSTILL_LEAST_SECONDS = 1.0
# How often the measured time of a load begins anew where the server stood still in it.
MOST_RESTARTS = 2
# Share of an open loop's measured time that it sends before, not measured, to fill the server.
LEAD_IN_SHARE = 0.25
# A bound on when so many arrivals have come is missed once in exp(9), that is 8,000 times.
LATE_NATS = 9.0


@dataclass(frozen=True)
class LoadTime:
    """How long one load takes: its measured time at least and at most, and the whole of it at most.

    ``again_seconds`` is what a measured time that begins anew after a standstill adds at most.
    """

    measured_least_seconds: float
    measured_most_seconds: float
    most_seconds: float
    again_seconds: float


def answer_seconds(output_tokens: int, prompt_tokens: int = 0) -> float:
    """Return how long a slow server takes for one answer."""
    return output_tokens * SLOW_TOKEN_SECONDS + prompt_tokens / SLOW_PROMPT_TOKENS_PER_SECOND


def warm_up_cap_seconds(seconds: float) -> float:
    """Return after which time a warm-up ends with its next answer, warm or not."""
    return max(seconds, WARM_UP_CAP_SECONDS)


def lead_in_seconds(seconds: float) -> float:
    """Return how long an open loop sends before it measures."""
    return LEAD_IN_SHARE * seconds


def standstill_seconds(seconds: float, windows: int, prompt_tokens: int) -> float:
    """Return for how long no token may come, on any stream, of a server that was asked for some.

    A longer silence leaves less than STALLED_SHARE of the tokens of the window it lies in. A slow server that
    reads the longest prompt is silent by right.
    """
    window = seconds / windows
    most = max((1 - STALLED_SHARE) * window, STANDSTILL_LEAST_SECONDS)
    return most + answer_seconds(0, prompt_tokens)


def closed_loop(seconds: float, min_requests: int, streams: int, answer: float) -> LoadTime:
    """Return the time of a load of so many requests in flight: it ends with an answer, and is not drained."""
    most = max(seconds, math.ceil(min_requests / streams) * answer)
    again = STALL_SECONDS + answer + most
    return LoadTime(seconds, most, _before_seconds(seconds) + most + 2 * answer, again)


def open_loop(seconds: float, min_requests: int, rate: float, answer: float) -> LoadTime:
    """Return the time of a load at a rate of arrivals a second: whatever the server does, they set the time.

    It ends with the gap after the last arrival asked for. The sum of k gaps exceeds k + sqrt(2 k x) + x mean
    gaps with a probability of exp(-x) at most (Boucheron, Lugosi, Massart: Concentration Inequalities, 2.4).
    """
    least, gaps = max(seconds, min_requests / rate), min_requests + 1
    most = max(seconds, (gaps + math.sqrt(2 * gaps * LATE_NATS) + LATE_NATS) / rate)
    lead_in = lead_in_seconds(seconds)
    again = STALL_SECONDS + 2 * answer + lead_in + most
    return LoadTime(least, most, _before_seconds(seconds) + lead_in + most + 2 * answer, again)


def _before_seconds(seconds: float) -> float:
    return IDLE_WAIT_SECONDS + warm_up_cap_seconds(seconds)

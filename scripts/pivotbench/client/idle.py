"""A load begins on an idle server: one that has let go of the requests which the load before had cut.

A server may notice late that a client has gone, or be told to give up only later, and works on meanwhile.
What is measured then is measured beside left-overs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from pivotbench.pace import IDLE_WAIT_SECONDS

POLL_SECONDS = 0.05


@dataclass(frozen=True)
class IdleWait:
    """How long a server was waited for (None: it does not tell), and how many requests it held even then."""

    seconds: float | None
    held: int


def await_idle(requests_held: Callable[[float], int | None]) -> IdleWait:
    """Wait until a server runs no request and none waits in it, for IDLE_WAIT_SECONDS at most.

    ``requests_held`` asks it how many there are, within so many seconds (see Engine.requests_held). Where it
    does not tell, nothing is waited for.
    """
    began = time.monotonic()
    held = requests_held(IDLE_WAIT_SECONDS)
    if held is None:
        return IdleWait(None, 0)
    while held and (left := began + IDLE_WAIT_SECONDS - time.monotonic()) > 0:
        time.sleep(min(POLL_SECONDS, left))
        if (now := requests_held(left)) is None:
            break
        held = now
    return IdleWait(time.monotonic() - began, held)

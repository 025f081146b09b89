"""Who carries requests to the server, and how busy that keeps the client."""

from __future__ import annotations

import asyncio
import gc
import os
import time
from types import TracebackType
from typing import Protocol

from pivotbench.client.connection import Pool
from pivotbench.client.crew import CrewSender
from pivotbench.client.lag import LagSampler
from pivotbench.client.request import Exchange, Target

# At 100 tokens a second and stream, less than half of what a core carries (benchmarks/client/README.md).
STREAMS_PER_PROCESS = 128


class Sender(Protocol):
    """Carries exchanges to the server and watches itself meanwhile. Times are on the event loop's clock."""

    async def run(self, exchange: Exchange) -> None:
        """Carry one exchange to its end; cancelled, it stays as far as it came, its status "cut"."""
        ...

    def lag_p99_seconds(self, begin: float, end: float) -> float | None:
        """Return the 99th percentile of how late the client woke up from ``begin`` to ``end``."""
        ...

    def cpu_seconds(self) -> float:
        """Return the processor time the client has used so far."""
        ...


class LocalSender:
    """Sends from the event loop it is entered on."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.lag = LagSampler()

    async def __aenter__(self) -> LocalSender:
        # Nothing here makes reference cycles token by token; a collection would only delay a send.
        gc.collect()
        gc.freeze()
        gc.disable()
        self._pool = Pool(self._target.url)
        self._sampling = asyncio.create_task(self.lag.run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._sampling.cancel()
        await asyncio.gather(self._sampling, return_exceptions=True)
        self._pool.close()
        gc.enable()
        gc.unfreeze()

    async def run(self, exchange: Exchange) -> None:
        """Carry one exchange to its end."""
        await exchange.run(self._pool, self._target)

    def lag_p99_seconds(self, begin: float, end: float) -> float | None:
        """Return the 99th percentile of this loop's lag."""
        return self.lag.p99_seconds(begin, end)

    def cpu_seconds(self) -> float:
        """Return this process's processor time."""
        return time.process_time()


def open_sender(target: Target, streams: int) -> LocalSender | CrewSender:
    """Return a sender for about so many requests in flight, over as many processes as they need."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    processes = min(cores // 2, -(-streams // STREAMS_PER_PROCESS))
    return CrewSender(target, processes) if processes > 1 else LocalSender(target)

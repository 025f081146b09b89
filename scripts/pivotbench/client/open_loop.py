"""An open loop: requests go out when the schedule says, however many are still being answered.

Latencies run from the intended time, so that a server that stalls shows it in every request that came
meanwhile ("coordinated omission", as Gil Tene named what a closed loop hides).

Warm-up (see warmup.py) is one request at a time. Then come the arrivals: a lead-in, the measured time, and
more of them, not measured, until the last measured one has ended, so that it ends under the same load. A
measured request is waited for as long as any: until it is silent for the plan's stall time. What a request
needs before it can go out, such as its prompt in chat form, is made ready AHEAD_SECONDS earlier.

Where the time begins anew (see standstill.py), arrivals pause until all that is in flight has ended, so that
no backlog is left of the standstill; then come lead-in and measured time with the same intervals.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math

from pivotbench.client.connection import Pool
from pivotbench.client.http import BadResponseError
from pivotbench.client.loop import Errand, Loop
from pivotbench.client.request import Exchange, in_chat_form
from pivotbench.client.schedule import Schedule
from pivotbench.client.warmup import WarmUp
from pivotbench.pace import SLOW_TOKEN_SECONDS
from pivotbench.workloads import Prompt

# More streams than that are no server's load but a queue without end, and files and memory of the client.
MOST_IN_FLIGHT = 4096
AHEAD_SECONDS = 1.0


class OpenLoop(Loop):
    """One run at a given rate of arrivals, in requests a second."""

    def __init__(self, errand: Errand, rate: float, most_in_flight: int = MOST_IN_FLIGHT) -> None:
        super().__init__(errand, WarmUp(1, errand.plan.seconds))
        self.rate: float = rate
        self._most_in_flight = most_in_flight
        in_flight = math.ceil(rate * self.workload.output_tokens * SLOW_TOKEN_SECONDS)
        self.streams = min(most_in_flight, max(1, in_flight))
        plan, seed = self.plan, f"{self.plan.seed}/{self.workload.name}"
        self._schedule = Schedule.of(rate, seed, plan.seconds, plan.min_requests)
        self._salts = (
            itertools.count()
        )  # goes on where the prompts begin again, so that no cache has seen them
        self._awaited = 0
        self._anew = asyncio.Event()

    @property
    def where(self) -> str:
        """The workload and its rate, in words."""
        return f"{self.workload.name} at {self.rate:g} requests/s"

    def _counts(self, exchange: Exchange) -> bool:
        return exchange in self._series

    async def _drive(self) -> None:
        await self._warm_up()
        if self._over.is_set():
            return
        self._preparing = Pool(self.target.url)
        try:
            while not self._over.is_set():
                await self._send_all()
        finally:
            self._preparing.close()

    async def _send_all(self) -> None:
        """Send what the schedule says until the run is over or is to begin anew; then all of it has ended."""
        start = self._now() + AHEAD_SECONDS
        self._anew.clear()
        self._awaited = self._schedule.requests
        self._standstills.begin(start)
        async with asyncio.TaskGroup() as requests:
            requests.create_task(self._mark(start))
            for number, at in enumerate(self._schedule):
                if await self._anew_by(start + at - AHEAD_SECONDS) or self._over.is_set():
                    return
                prompt = self.prompts.at(number, self._salt("arrival", next(self._salts)))
                serving = self._serve(prompt, start + at, counts=self._schedule.counts(at))
                requests.create_task(serving)

    async def _anew_by(self, seconds: float) -> bool:
        """Wait until then, or until the run is to begin anew; return whether it is."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds - self._now()):
                await self._anew.wait()
        return self._anew.is_set()

    async def _warm_up(self) -> None:
        for number in itertools.count():
            prompt = self.prompts.at(0, self._salt("warm-up", number))
            exchange = self._exchange(prompt, self._ask(prompt, warmup=True))
            went_well = await self._carry(exchange)
            self.records.append(record := exchange.record(measured=False))
            if not went_well:
                await self._judge_failure(exchange)
            if self._over.is_set() or (went_well and self._warmed_by(record)):
                return

    async def _mark(self, start: float) -> None:
        begin, end = start + self._schedule.begin_seconds, start + self._schedule.end_seconds
        if await self._anew_by(begin):
            return
        self._mark_begin(begin)
        if await self._anew_by(end):
            return
        self._mark_end(end)
        self._end_if_done()

    def _salt(self, series: str, number: int) -> str:
        return f"{self.plan.seed}/{self.workload.name}/{self.rate:g}/{series}/{number}"

    async def _serve(self, prompt: Prompt, intended_seconds: float, *, counts: bool) -> None:
        ask = self._ask(prompt)
        # Whatever goes wrong here is left to the request itself, which then shows it in its latency.
        with contextlib.suppress(OSError, ValueError, BadResponseError):
            async with asyncio.timeout(intended_seconds - self._now()):
                ask = await in_chat_form(ask, self._preparing, self.target)
        if await self._anew_by(intended_seconds) or self._over.is_set():
            return
        if len(self._in_flight) >= self._most_in_flight:
            self._give_up()
            return
        exchange = self._exchange(prompt, ask, intended_seconds)
        if counts:
            self._series.add(exchange)
        went_well = await self._carry(exchange)
        self.records.append(record := exchange.record(measured=exchange in self._series))
        if went_well and self._begins_anew(record.end_seconds):
            self._anew.set()
            return
        self._awaited -= record.measured
        self._series.discard(exchange)
        self._end_if_done()
        if not went_well:
            await self._judge_failure(exchange)

    def _end_if_done(self) -> None:
        if self._end is not None and not self._awaited:
            self._over.set()

    def _give_up(self) -> None:
        self.in_flight_limit = self._most_in_flight
        self._fail_unfinished(f"{self._most_in_flight} requests in flight")
        if self._begin is not None and self._end is None:
            self._mark_end(self._now())
        self._over.set()

"""A closed loop: N workers, each of which sends its next prompt when its last answer ended.

Warm-up (see warmup.py) is the same N prompts again and again, in short; of conversations only the first turn.

The measured time begins and ends at the end of a request, so that at concurrency 1 it holds whole requests,
prefill and decode in their true proportion. Requests in flight at its end are cut: their tokens up to
then count, their latencies do not, and there is no drain. A worker keeps a conversation to its end. Where the
time begins anew (see standstill.py), it does so at the end of the first request after the standstill.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from pivotbench.client.loop import Errand, Loop
from pivotbench.client.record import RequestRecord, whole_text
from pivotbench.client.request import Exchange
from pivotbench.client.warmup import WarmUp
from pivotbench.workloads import Prompt

# The server may answer errors at once; this keeps a failing run from flooding it.
FAILURE_PAUSE_SECONDS = 0.05


class ClosedLoop(Loop):
    """One run at a fixed number of requests in flight."""

    def __init__(self, errand: Errand, concurrency: int) -> None:
        super().__init__(errand, WarmUp(concurrency, errand.plan.seconds))
        self.concurrency: int = concurrency
        self.streams = concurrency
        self._warmup_sent = self._measured_sent = self._measured_ended = 0
        self._salts = 0  # goes on where the prompts begin again: no cache has seen them

    @property
    def where(self) -> str:
        """The workload and its concurrency, in words."""
        return f"{self.workload.name} at concurrency {self.concurrency}"

    async def _drive(self) -> None:
        async with asyncio.TaskGroup() as workers:
            for _ in range(self.concurrency):
                workers.create_task(self._work())

    async def _work(self) -> None:
        turn: Prompt | None = None
        while not self._over.is_set():
            warmup = self._begin is None
            if turn is None:
                turn = self._next(warmup)
            exchange = self._exchange(turn, self._ask(turn, warmup=warmup))
            if not warmup:
                self._series.add(exchange)
            if await self._carry(exchange):
                self._take(exchange, warmup)
                turn = turn.after(whole_text(exchange.chunks))
            else:
                self.records.append(self._ended(exchange))
                turn = None
                await self._judge_failure(exchange)
                await asyncio.sleep(FAILURE_PAUSE_SECONDS)

    def _next(self, warmup: bool) -> Prompt:
        if warmup:
            position = self._warmup_sent % self.concurrency
            self._warmup_sent += 1
            number = self._warmup_sent
        else:
            position = self._measured_sent
            self._measured_sent += 1
            self._salts += 1
            number = self._salts
        salt = f"{self.plan.seed}/{self.workload.name}/{self.concurrency}/{warmup}/{number}"
        prompt = self.prompts.at(position, salt)
        return replace(prompt, later=()) if warmup else prompt

    def _ended(self, exchange: Exchange) -> RequestRecord:
        measured = exchange in self._series and self._end is None
        self._series.discard(exchange)
        return exchange.record(measured=measured)

    def _take(self, exchange: Exchange, warmup: bool) -> None:
        self.records.append(record := self._ended(exchange))
        if warmup:
            if self._begin is None and self._warmed_by(record):
                self._begin_at(record)
            return
        if self._end is None and self._begins_anew(record.end_seconds):
            self._begin_at(record)
            return
        self._measured_ended += record.measured
        assert self._begin is not None
        enough = record.end_seconds - self._begin >= self.plan.seconds
        if enough and self._measured_ended >= self.plan.min_requests and self._end is None:
            self._mark_end(record.end_seconds)
            self._over.set()

    def _begin_at(self, record: RequestRecord) -> None:
        self._measured_sent = self._measured_ended = 0
        self._mark_begin(record.end_seconds)
        self._standstills.begin(record.end_seconds)

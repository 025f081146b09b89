"""One run: N workers, each of which sends its next prompt when its last answer ended.

Warm-up: short requests over the same N prompts again and again. One reading is the mean rate of N of
them; the measured time begins once the last two readings are within WARMUP_TOLERANCE of each other, or
after the longer of the plan's seconds and WARMUP_CAP_SECONDS.

The measured time begins and ends at the end of a request, so that at concurrency 1 it holds whole requests,
prefill and decode in their true proportion. Requests in flight at its end are cut: their tokens up to
then count, their latencies do not, and there is no drain.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from pivotbench.client.dialects import Ask
from pivotbench.client.plan import LoadPlan, WorkloadPlan
from pivotbench.client.request import Exchange, Identity, RequestRecord, Target
from pivotbench.client.sender import LocalSender, Sender
from pivotbench.results import Reason
from pivotbench.workloads import PromptOrder, salted

WARMUP_TOLERANCE = 0.10
WARMUP_CAP_SECONDS = 1.5
WARMUP_TOKENS_SHARE = 0.25
WARMUP_TOKENS_LEAST = 8

ALIVE_POLL_SECONDS = 0.25
# A crashing process may still be dumping its memory when its connections are already gone.
DEATH_WAIT_SECONDS = 1.0
FAILURES_IN_A_ROW = 4


@dataclass(frozen=True)
class Measured:
    """The measured time, in seconds from the run's start; ``begin`` is None if it never came to that."""

    begin_seconds: float | None
    end_seconds: float | None
    warmup_requests: int
    warmup_seconds: float
    warmup_stable: bool
    lag_p99_seconds: float | None
    client_cpu_percent: float | None


class ClosedLoop:
    """The state of one run; ``alive`` tells whether the server's process still runs."""

    def __init__(
        self,
        target: Target,
        workload: WorkloadPlan,
        concurrency: int,
        plan: LoadPlan,
        order: PromptOrder,
        alive: Callable[[], bool],
    ) -> None:
        self.target, self.workload, self.concurrency = target, workload, concurrency
        self.plan, self.order, self.alive = plan, order, alive
        self.records: list[RequestRecord] = []
        self.reason: Reason | None = None
        self._in_flight: set[Exchange] = set()
        self._over = asyncio.Event()
        self._sent = self._warmup_sent = self._measured_sent = self._measured_ended = 0
        self._warmup_rates: list[float] = []
        self._stable = False
        self._begin: float | None = None
        self._end: float | None = None
        self._begin_cpu = 0.0
        self._failures = 0
        self._last_token_seconds = 0.0

    async def run(self) -> Measured:
        """Warm up, measure, cut; the records and the reason are then complete."""
        loop = asyncio.get_running_loop()
        self._origin = loop.time()
        async with LocalSender(self.target, self.concurrency) as sender:
            self._sender: Sender = sender
            workers = [asyncio.create_task(self._work()) for _ in range(self.concurrency)]
            watcher, over = asyncio.create_task(self._watch()), asyncio.create_task(self._over.wait())
            try:
                await asyncio.wait([*workers, watcher, over], return_when=asyncio.FIRST_COMPLETED)
                client_cpu = sender.cpu_seconds() - self._begin_cpu
            finally:
                for task in (*workers, watcher, over):
                    task.cancel()
                ended = await asyncio.gather(*workers, watcher, over, return_exceptions=True)
        for error in ended:
            if isinstance(error, BaseException) and not isinstance(error, asyncio.CancelledError):
                raise error
        begin = self._begin
        end = self._end
        if begin is not None and end is None:
            end = max(begin, self._newest_token_seconds())
        self.records += [exchange.record(measured=False) for exchange in self._in_flight]
        self.records.sort(key=lambda record: record.index)
        return Measured(
            begin_seconds=begin,
            end_seconds=end,
            warmup_requests=len(self._warmup_rates),
            warmup_seconds=self._now() if begin is None else begin,
            warmup_stable=self._stable,
            lag_p99_seconds=(
                sender.lag_p99_seconds(self._origin + begin, self._origin + end)
                if begin is not None and end is not None
                else None
            ),
            client_cpu_percent=(
                100 * client_cpu / (end - begin)
                if begin is not None and end is not None and end > begin
                else None
            ),
        )

    async def _work(self) -> None:
        while not self._over.is_set():
            warmup = self._begin is None
            exchange = self._next(warmup)
            self._in_flight.add(exchange)
            # Cancelled, it stays in flight and is recorded as cut.
            await self._sender.run(exchange)
            self._in_flight.discard(exchange)
            if exchange.chunks:
                self._last_token_seconds = max(self._last_token_seconds, exchange.chunks[-1].seconds)
            if exchange.status == "ok":
                self._failures = 0
                self._take(exchange, warmup)
            else:
                self.records.append(exchange.record(measured=not warmup and self._end is None))
                self._measured_ended += not warmup
                await self._judge_failure(exchange)

    def _next(self, warmup: bool) -> Exchange:
        tokens = self.workload.output_tokens
        if warmup:
            position = self._warmup_sent % self.concurrency
            self._warmup_sent += 1
            tokens = min(tokens, max(WARMUP_TOKENS_LEAST, round(tokens * WARMUP_TOKENS_SHARE)))
        else:
            position = self._measured_sent
            self._measured_sent += 1
        prompt = self.order[position]
        salt = f"{self.plan.seed}/{self.workload.name}/{self.concurrency}/{warmup}/" + str(
            self._warmup_sent if warmup else self._measured_sent
        )
        identity = Identity(
            workload=self.workload.name,
            kind=self.workload.kind,
            concurrency=self.concurrency,
            index=self._sent,
            prompt_id=prompt.id,
        )
        self._sent += 1
        ask = Ask(messages=salted(prompt, salt), max_tokens=tokens, ignore_eos=True)
        return Exchange(identity, ask, self.target.dialect, self._origin)

    def _take(self, exchange: Exchange, warmup: bool) -> None:
        record = exchange.record(measured=not warmup and self._end is None)
        self.records.append(record)
        if warmup:
            if self._begin is None and self._is_warm(record):
                self._begin = record.end_seconds
                self._begin_cpu = self._sender.cpu_seconds()
            return
        self._measured_ended += 1
        assert self._begin is not None
        enough = record.end_seconds - self._begin >= self.plan.seconds
        if enough and self._measured_ended >= self.plan.min_requests and self._end is None:
            self._end = record.end_seconds
            self._over.set()

    def _is_warm(self, record: RequestRecord) -> bool:
        tokens = record.output_tokens if record.output_tokens is not None else record.stream_tokens
        size, rates = self.concurrency, self._warmup_rates
        rates.append(tokens / max(record.e2e_seconds or 0.0, 1e-9))
        if len(rates) >= 2 * size and len(rates) % size == 0:
            last, before = sum(rates[-size:]), sum(rates[-2 * size : -size])
            self._stable = abs(last - before) <= WARMUP_TOLERANCE * max(last, before)
        cap = max(self.plan.seconds, WARMUP_CAP_SECONDS)
        return self._stable or (record.end_seconds >= cap and len(rates) >= size)

    async def _judge_failure(self, exchange: Exchange) -> None:
        self._failures += 1
        if exchange.connection_lost:
            await self._await_death()
        silent_seconds = self._now() - self._newest_token_seconds()
        if exchange.status == "timeout" and silent_seconds >= 0.9 * self.target.stall_seconds:
            self._stop("timeout", f"no token on any stream for {silent_seconds:.0f} s", exchange)
        elif self._failures >= max(FAILURES_IN_A_ROW, self.concurrency):
            what = f"{self._failures} requests in a row failed"
            if exchange.connection_lost:
                self._stop("server_died", f"{what}: the server takes no connection", exchange)
            else:
                self._stop("requests_failed", f"{what}: {exchange.error}", exchange)
        # The server may answer errors at once; this keeps a failing run from flooding it.
        await asyncio.sleep(0.05)

    async def _await_death(self) -> None:
        until = self._now() + DEATH_WAIT_SECONDS
        while self._now() < until and not self._over.is_set():
            await self._look_for_death()
            await asyncio.sleep(0.05)

    async def _watch(self) -> None:
        while not self._over.is_set():
            await self._look_for_death()
            await asyncio.sleep(ALIVE_POLL_SECONDS)

    async def _look_for_death(self) -> None:
        if not await asyncio.to_thread(self.alive):
            self._stop("server_died", "the server's process ended while it was measured", None)

    def _stop(self, code: str, message: str, exchange: Exchange | None) -> None:
        if self.reason is None:
            where = f"{self.workload.name} at concurrency {self.concurrency}"
            evidence = (exchange.error,) if exchange and exchange.error else ()
            self.reason = Reason.of(code, f"{message} ({where})", evidence)
            for unfinished in self._in_flight:
                if unfinished.status == "cut":
                    unfinished.status, unfinished.error = "failed", f"in flight when the run ended: {code}"
        self._over.set()

    def _newest_token_seconds(self) -> float:
        in_flight = [exchange.chunks[-1].seconds for exchange in self._in_flight if exchange.chunks]
        return max([self._last_token_seconds, *in_flight])

    def _now(self) -> float:
        return asyncio.get_running_loop().time() - self._origin

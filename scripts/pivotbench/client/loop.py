"""What every run does, whatever sets its pace: send, watch for the server's death, stop, keep records."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

from pivotbench.client.dialects import Ask
from pivotbench.client.plan import LoadPlan, Measured, WorkloadPlan
from pivotbench.client.record import Identity, RequestRecord
from pivotbench.client.request import Exchange, Target
from pivotbench.client.sender import Sender, open_sender
from pivotbench.client.standstill import StandstillWatch
from pivotbench.client.warmup import WarmUp, warmup_tokens
from pivotbench.results import Reason
from pivotbench.workloads import Prompt, Prompts

ALIVE_POLL_SECONDS = 0.25
# A crashing process may still be dumping its memory when its connections are already gone.
DEATH_WAIT_SECONDS = 1.0
FAILURES_IN_A_ROW = 4


@dataclass(frozen=True)
class Errand:
    """What a run sends, where, and under which plan; ``alive`` tells whether the server still runs."""

    target: Target
    workload: WorkloadPlan
    plan: LoadPlan
    prompts: Prompts
    alive: Callable[[], bool]


class Loop(ABC):
    """The state of one run."""

    concurrency: int | None = None
    rate: float | None = None
    streams: int  # requests to be expected in flight
    in_flight_limit: int | None = None

    def __init__(self, errand: Errand, warmup: WarmUp) -> None:
        self.target, self.workload, self.plan = errand.target, errand.workload, errand.plan
        self.prompts, self.alive, self.warmup = errand.prompts, errand.alive, warmup
        self.records: list[RequestRecord] = []
        self.reason: Reason | None = None
        self._standstills = StandstillWatch(self.plan.standstill_seconds(self.workload))
        self._in_flight: set[Exchange] = set()
        self._series: set[Exchange] = set()  # those in flight that are to be measured
        self._set_aside = 0
        self._over = asyncio.Event()
        self._sent = 0
        self._begin: float | None = None
        self._end: float | None = None
        self._begin_cpu = 0.0
        self._end_cpu: float | None = None
        self._failures = 0
        self._last_token_seconds = 0.0

    @property
    @abstractmethod
    def where(self) -> str:
        """The workload and its pace, in words."""

    @abstractmethod
    async def _drive(self) -> None:
        """Warm up, measure, and set ``_over``; being cancelled leaves what is in flight as cut."""

    def _counts(self, exchange: Exchange) -> bool:  # noqa: ARG002
        """Return whether a request still in flight at the end is one of those that are measured."""
        return False

    async def run(self) -> Measured:
        """Warm up, measure, end; the records and the reason are then complete."""
        self._origin = asyncio.get_running_loop().time()
        async with open_sender(self.target, self.streams) as sender:
            self._sender: Sender = sender
            work = (self._drive(), self._watch(), self._over.wait())
            tasks = [asyncio.ensure_future(part) for part in work]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                end_cpu = sender.cpu_seconds() if self._end_cpu is None else self._end_cpu
            finally:
                for task in tasks:
                    task.cancel()
                ended = await asyncio.gather(*tasks, return_exceptions=True)
        for error in ended:
            # A group holds what the first of several tasks raised; it is that which says what is wrong.
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            if isinstance(error, BaseException) and not isinstance(error, asyncio.CancelledError):
                raise error
        begin, end = self._begin, self._end
        if begin is not None and end is None:
            end = max(begin, self._newest_token_seconds())
        self.records += [exchange.record(measured=self._counts(exchange)) for exchange in self._in_flight]
        self.records[: self._set_aside] = [
            replace(record, measured=False) if _is_set_aside(record) else record
            for record in self.records[: self._set_aside]
        ]
        self.records.sort(key=lambda record: record.index)
        lag = cpu_percent = None
        if begin is not None and end is not None and end > begin:
            lag = sender.lag_p99_seconds(self._origin + begin, self._origin + end)
            cpu_percent = 100 * (end_cpu - self._begin_cpu) / (end - begin)
        return Measured(
            begin_seconds=begin,
            end_seconds=end,
            warmup_requests=self._warmup_requests(),
            warmup_seconds=self._now() if begin is None else begin,
            warmup_stable=self.warmup.stable,
            lag_p99_seconds=lag,
            client_cpu_percent=cpu_percent,
            standstill_seconds=self._standstills.limit_seconds,
            restarts=self._standstills.restarts,
            stood_still_seconds=self._standstills.seconds,
            in_flight_limit=self.in_flight_limit,
        )

    def _ask(self, prompt: Prompt, *, warmup: bool = False) -> Ask:
        """Return what is asked of the server; warm-up answers are short and all of one length."""
        tokens = self.workload.output_tokens
        return Ask(
            prompt.messages,
            warmup_tokens(tokens) if warmup else tokens,
            ignore_eos=warmup or self.workload.stop == "length",
            prompt_ids=prompt.token_ids,
        )

    def _exchange(self, prompt: Prompt, ask: Ask, intended_seconds: float | None = None) -> Exchange:
        identity = Identity(
            workload=self.workload.name,
            kind=self.workload.kind,
            concurrency=self.concurrency,
            index=self._sent,
            prompt_id=prompt.id,
            rate_per_second=self.rate,
            turn=prompt.turn,
            intended_seconds=intended_seconds,
            stop=self.workload.stop,
        )
        self._sent += 1
        return Exchange(identity, ask, self.target.dialect, self._origin)

    async def _carry(self, exchange: Exchange) -> bool:
        """Carry one request to its end and return whether it went well."""
        self._in_flight.add(exchange)
        exchange.sent_seconds = self._now()
        # Cancelled, it stays in flight and is recorded as cut.
        await self._sender.run(exchange)
        self._in_flight.discard(exchange)
        if exchange.chunks:
            self._last_token_seconds = max(self._last_token_seconds, exchange.chunks[-1].seconds)
        if exchange.status != "ok":
            return False
        self._failures = 0
        return True

    def _warmed_by(self, record: RequestRecord) -> bool:
        tokens = record.output_tokens if record.output_tokens is not None else record.stream_tokens
        over = self.warmup.take(tokens / max(record.e2e_seconds or 0.0, 1e-9), record.end_seconds)
        if over:
            tokens = self.workload.output_tokens
            self._standstills.allow(self.records, tokens / warmup_tokens(tokens))
        return over

    def _mark_begin(self, seconds: float) -> None:
        self._begin, self._begin_cpu = seconds, self._sender.cpu_seconds()

    def _mark_end(self, seconds: float) -> None:
        self._end, self._end_cpu = seconds, self._sender.cpu_seconds()

    def _begins_anew(self, at_seconds: float) -> bool:
        """Return whether the server stood still before an answer that ended then: all until now is warm-up.

        Requests in flight that were to be measured no longer are; the prompts begin again, with other salts.
        """
        if not self._standstills.stood_still(at_seconds, self._known):
            return False
        self._set_aside = len(self.records)
        self._series.clear()
        self._begin = self._end = self._end_cpu = None
        return True

    def _warmup_requests(self) -> int:
        if not self._standstills.restarts or self._begin is None:
            return self.warmup.requests
        return sum(r.status == "ok" and r.end_seconds <= self._begin for r in self.records)

    def _known(self) -> list[RequestRecord]:
        return [*self.records, *(exchange.record(measured=False) for exchange in self._in_flight)]

    async def _judge_failure(self, exchange: Exchange) -> None:
        self._failures += 1
        if exchange.connection_lost:
            await self._await_death()
        silent_seconds = self._now() - self._newest_token_seconds()
        if exchange.status == "timeout" and silent_seconds >= 0.9 * self.target.stall_seconds:
            self._stop("timeout", f"no token on any stream for {silent_seconds:.0f} s", exchange)
        elif self._failures >= max(FAILURES_IN_A_ROW, self.concurrency or len(self._in_flight)):
            what = f"{self._failures} requests in a row failed"
            if exchange.connection_lost:
                self._stop("server_died", f"{what}: the server takes no connection", exchange)
            else:
                self._stop("requests_failed", f"{what}: {exchange.error}", exchange)

    async def _await_death(self) -> None:
        until = self._now() + DEATH_WAIT_SECONDS
        while self._now() < until and not self._over.is_set():
            await self._look_for_death()
            await asyncio.sleep(0.05)

    async def _watch(self) -> None:
        while not self._over.is_set():
            await self._look_for_death()
            if self._in_flight:
                self._standstills.look(self._now(), self._newest_token_seconds())
            await asyncio.sleep(ALIVE_POLL_SECONDS)

    async def _look_for_death(self) -> None:
        if not await asyncio.to_thread(self.alive):
            self._stop("server_died", "the server's process ended while it was measured", None)

    def _stop(self, code: str, message: str, exchange: Exchange | None) -> None:
        if self.reason is None:
            evidence = (exchange.error,) if exchange and exchange.error else ()
            self.reason = Reason.of(code, f"{message} ({self.where})", evidence)
            self._fail_unfinished(code)
        self._over.set()

    def _fail_unfinished(self, why: str) -> None:
        for unfinished in self._in_flight:
            if unfinished.status == "cut":
                unfinished.status, unfinished.error = "failed", f"in flight when the run ended: {why}"
                unfinished.end_seconds = self._now()

    def _newest_token_seconds(self) -> float:
        in_flight = [exchange.chunks[-1].seconds for exchange in self._in_flight if exchange.chunks]
        return max([self._last_token_seconds, *in_flight])

    def _now(self) -> float:
        return asyncio.get_running_loop().time() - self._origin


def _is_set_aside(record: RequestRecord) -> bool:
    """Return whether a request before a new begin is warm-up: one that failed is lost as ever."""
    return record.measured and record.status in ("ok", "cut")

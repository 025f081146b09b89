"""A sender that spreads its streams over several processes, each with an event loop of its own."""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
import subprocess
import sys
import time
from types import TracebackType

import psutil

from pivotbench.client.dialects import Chunk
from pivotbench.client.lag import LagSampler
from pivotbench.client.messages import Cut, End, Lag, Progress, Send, pack, receive
from pivotbench.client.request import Exchange, Target
from pivotbench.errors import UserError

# A process starts in well under a second on an idle machine.
START_SECONDS = 60.0
END_SECONDS = 5.0


class Hand:
    """One process as seen from the one that started it."""

    def __init__(self, number: int) -> None:
        ours, theirs = socket.socketpair()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pivotbench.client.member", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
        theirs.close()
        self.number = number
        self.lag = LagSampler()
        self.cpu_seconds = 0.0
        self.in_flight: dict[int, tuple[Exchange, asyncio.Future[None]]] = {}
        self._socket = ours
        self._writer: asyncio.StreamWriter | None = None
        self._gone: Exception | None = None

    async def begin(self, target: Target) -> None:
        """Wait until the process takes exchanges, and take its reports from then on."""
        self._reader, self._writer = await asyncio.open_connection(sock=self._socket)
        try:
            self.say(target)
            await asyncio.wait_for(receive(self._reader), START_SECONDS)
        except (EOFError, TimeoutError):
            raise self._error("did not start") from None
        self._listening = asyncio.create_task(self._listen())

    def say(self, message: object) -> None:
        """Send the process a message."""
        assert self._writer is not None
        self._writer.write(pack(message))

    async def run(self, number: int, exchange: Exchange) -> None:
        """Have the process carry an exchange; see Sender.run. Raises UserError if the process is gone."""
        if self._gone:
            raise self._gone
        ended = asyncio.get_running_loop().create_future()
        self.in_flight[number] = exchange, ended
        self.say(Send(number, exchange.identity, exchange.ask, exchange.dialect, exchange.origin))
        try:
            await asyncio.wait({ended})
        except asyncio.CancelledError:
            self.say(Cut(number))
            await asyncio.wait({ended}, timeout=END_SECONDS)
            raise
        finally:
            self.in_flight.pop(number, None)
        ended.result()

    async def end(self) -> None:
        """Have the process report a last time and end."""
        self.say(End())
        await asyncio.wait({self._listening}, timeout=END_SECONDS)
        self._listening.cancel()

    def kill(self) -> None:
        """End the process at once if it has not ended."""
        if self._writer:
            self._writer.close()
        self._socket.close()
        self.process.kill()
        self.process.wait()

    async def _listen(self) -> None:
        try:
            while True:
                message = await receive(self._reader)
                if isinstance(message, Lag):
                    self.lag.samples += message.samples
                elif message.number in self.in_flight:
                    self._take(message)
        except Exception as error:
            self._gone = self._error("ended") if isinstance(error, EOFError) else error
            for _, ended in self.in_flight.values():
                if not ended.done():
                    ended.set_exception(self._gone)

    def _take(self, progress: Progress) -> None:
        exchange, ended = self.in_flight[progress.number]
        exchange.chunks += map(Chunk, progress.seconds, progress.texts, progress.tokens)
        if progress.outcome is None:
            return
        judged = exchange.status != "cut"
        for name, value in progress.outcome.items():
            if not (judged and name in ("status", "error", "end_seconds")):
                setattr(exchange, name, value)
        if not ended.done():
            ended.set_result(None)

    def _error(self, what: str) -> UserError:
        return UserError(
            f"process {self.number} of the load client (pid {self.process.pid}) {what} "
            f"with exit status {self.process.poll()}; its messages are above"
        )


class CrewSender:
    """Spreads exchanges over processes; each goes to the process with the fewest in flight.

    An exchange's chunks arrive here four times a second and at its end; their times are those of the process
    that received them, on the clock all processes share.
    """

    def __init__(self, target: Target, processes: int) -> None:
        self._target, self._processes = target, processes
        self._numbers = itertools.count()
        self._lag = LagSampler()

    async def __aenter__(self) -> CrewSender:
        self._hands = [Hand(number) for number in range(1, self._processes + 1)]
        try:
            await asyncio.gather(*(hand.begin(self._target) for hand in self._hands))
        except BaseException:
            self._kill()
            raise
        self._sampling = asyncio.create_task(self._lag.run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._sampling.cancel()
            self.cpu_seconds()
            await asyncio.gather(
                self._sampling, *(hand.end() for hand in self._hands), return_exceptions=True
            )
        finally:
            self._kill()

    def _kill(self) -> None:
        for hand in self._hands:
            hand.kill()

    async def run(self, exchange: Exchange) -> None:
        """Carry one exchange to its end in one of the processes."""
        hand = min(self._hands, key=lambda hand: len(hand.in_flight))
        await hand.run(next(self._numbers), exchange)

    def lag_p99_seconds(self, begin: float, end: float) -> float | None:
        """Return the 99th percentile of the lag of the process where it is worst, this one included."""
        lags = [lag.p99_seconds(begin, end) for lag in (self._lag, *(hand.lag for hand in self._hands))]
        return max((lag for lag in lags if lag is not None), default=None)

    def cpu_seconds(self) -> float:
        """Return the processor time of this process and all others of the client."""
        for hand in self._hands:
            try:
                times = psutil.Process(hand.process.pid).cpu_times()
                hand.cpu_seconds = times.user + times.system
            except psutil.Error:
                pass
        return time.process_time() + sum(hand.cpu_seconds for hand in self._hands)

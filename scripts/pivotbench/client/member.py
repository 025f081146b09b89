"""One of several client processes: carries the exchanges it is told to and reports as they come along.

    python -m pivotbench.client.member DESCRIPTOR

The descriptor is its end of a socket to the process that started it; when that ends, so does this one.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from typing import Any

from pivotbench.client.messages import Cut, End, Lag, Progress, Send, pack, receive
from pivotbench.client.request import Exchange, Target
from pivotbench.client.sender import LocalSender

REPORT_SECONDS = 0.25

OUTCOME = ("ask", "status", "error", "connection_lost", "sent_seconds", "end_seconds", "tally", "counts")


class Member:
    """The exchanges of this process."""

    def __init__(self, sender: LocalSender, writer: asyncio.StreamWriter) -> None:
        self._sender, self._writer = sender, writer
        self._exchanges: dict[int, Exchange] = {}
        self._reported: dict[int, int] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._lag_reported = 0

    async def listen(self, reader: asyncio.StreamReader) -> None:
        """Do what is told until told to end. Raises EOFError when there is nobody left to tell."""
        while True:
            told = await receive(reader)
            if isinstance(told, Send):
                self._tasks[told.number] = asyncio.create_task(self._carry(told))
            elif isinstance(told, Cut) and told.number in self._tasks:
                self._tasks[told.number].cancel()
            elif isinstance(told, End):
                return

    async def report_regularly(self) -> None:
        """Report again and again."""
        while True:
            await asyncio.sleep(REPORT_SECONDS)
            self.report()

    def report(self) -> None:
        """Report what is new."""
        for number, exchange in self._exchanges.items():
            if len(exchange.chunks) > self._reported[number]:
                self._say_progress(number, None)
        samples = self._sender.lag.samples[self._lag_reported :]
        self._lag_reported += len(samples)
        self._writer.write(pack(Lag(samples)))

    async def _carry(self, told: Send) -> None:
        number = told.number
        exchange = Exchange(told.identity, told.ask, told.dialect, told.origin)
        self._exchanges[number], self._reported[number] = exchange, 0
        try:
            await self._sender.run(exchange)
        except Exception as error:
            # Nobody awaits this task: what is wrong is told where the exchange is.
            exchange.status, exchange.error = "failed", f"in the client: {type(error).__name__}: {error}"
        finally:
            self._say_progress(number, {name: getattr(exchange, name) for name in OUTCOME})
            del self._exchanges[number], self._reported[number], self._tasks[number]

    def _say_progress(self, number: int, outcome: dict[str, Any] | None) -> None:
        new = self._exchanges[number].chunks[self._reported[number] :]
        self._reported[number] += len(new)
        seconds, texts, tokens = ([getattr(c, name) for c in new] for name in ("seconds", "text", "tokens"))
        self._writer.write(pack(Progress(number, seconds, texts, tokens, outcome)))


async def _main(descriptor: int) -> None:
    reader, writer = await asyncio.open_connection(sock=socket.socket(fileno=descriptor))
    target: Target = await receive(reader)
    async with LocalSender(target) as sender:
        member = Member(sender, writer)
        writer.write(pack(End()))
        reporting = asyncio.create_task(member.report_regularly())
        await member.listen(reader)
        reporting.cancel()
        member.report()
    await writer.drain()
    writer.close()
    await writer.wait_closed()


if __name__ == "__main__":
    # A terminal's Ctrl-C reaches every process; the one that started this one decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        asyncio.run(_main(int(sys.argv[1])))
    except EOFError:
        sys.exit(1)

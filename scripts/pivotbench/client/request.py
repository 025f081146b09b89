"""One streamed request, timed chunk by chunk, and the record it leaves behind."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field, replace
from typing import Literal

from pivotbench.client.connection import Pool
from pivotbench.client.dialects import (
    AnswerError,
    Ask,
    Chunk,
    body_of,
    chat_form,
    chat_form_body,
    chat_form_path,
    path_of,
    reader_of,
    spread_tokens,
)
from pivotbench.client.http import BadResponseError
from pivotbench.client.json_bytes import decode, encode
from pivotbench.client.sse import END_MARK, EventParser
from pivotbench.engines.base import Dialect

RequestStatus = Literal["ok", "failed", "short", "timeout", "cut"]


@dataclass(frozen=True)
class Target:
    """The server that is asked: address, dialect, the name it serves, and how long silence may last."""

    url: str
    dialect: Dialect
    model_name: str
    stall_seconds: float


@dataclass(frozen=True)
class Identity:
    """Which request of which run this is; columns of its record.

    ``intended_seconds`` is when an open loop's schedule sends it: its latencies run from there.
    """

    workload: str
    kind: str
    concurrency: int | None
    index: int
    prompt_id: str
    rate_per_second: float | None = None
    turn: int = 0
    intended_seconds: float | None = None


@dataclass(frozen=True)
class RequestRecord:
    """One row of requests.parquet. Times are seconds from the run's start on a monotonic clock: a request's
    when it began to leave on an open connection, a chunk's when its last byte reached this machine.

    ``status``: ok; failed (refused, broken, an HTTP or a reported error); short (ended without a finish
    reason, without the stream's end mark, or with fewer tokens than were asked for); timeout; cut (our own
    end of the measured time). ttft, tpot and e2e are null unless ok, so that a broken answer is never a
    fast one. ``measured`` is true for a request of the measured series that ended within the measured time.
    ``chunk_tokens`` sum to ``output_tokens``, the server's count, where it is known. ttft and e2e run from
    ``intended_seconds`` where there is one (open loop), else from ``sent_seconds``. ``prompt_ids_sent`` is
    the length of a prompt that was sent as token ids.
    """

    workload: str
    kind: str
    concurrency: int | None
    index: int
    measured: bool
    prompt_id: str
    status: RequestStatus
    finish_reason: str | None
    error: str | None
    prompt_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    stream_tokens: int
    sent_seconds: float
    first_token_seconds: float | None
    end_seconds: float
    ttft_seconds: float | None
    tpot_seconds: float | None
    e2e_seconds: float | None
    chunk_seconds: list[float]
    chunk_tokens: list[int]
    draft_proposed: int | None
    draft_accepted: int | None
    verify_steps: int | None
    accept_histogram: list[int] | None
    text: str
    rate_per_second: float | None = None
    turn: int = 0
    intended_seconds: float | None = None
    prompt_ids_sent: int | None = None


@dataclass(eq=False)
class Exchange:
    """A request in flight. ``origin`` is the run's start on the event loop's clock."""

    identity: Identity
    ask: Ask
    dialect: Dialect
    origin: float
    status: RequestStatus = "cut"
    error: str | None = "ended with the measured time"
    connection_lost: bool = False
    chunks: list[Chunk] = field(default_factory=list)
    sent_seconds: float = 0.0
    end_seconds: float | None = None

    def __post_init__(self) -> None:
        self.reader = reader_of(self.dialect)
        self._events = EventParser()
        self._ended = False

    async def run(self, pool: Pool, target: Target) -> None:
        """Send the request and read it to its end; what went wrong is kept as status and error.

        A timeout is ``stall_seconds`` without a token, or a stream slower than a token a second
        beyond that. Being cancelled leaves the status "cut". Where the dialect needs the messages in chat
        form first, that is asked for before the request's time begins.
        """
        self._newest = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(None) as silence:
                self._watch(silence, target.stall_seconds, self._newest + self.ask.max_tokens)
                self.ask = await in_chat_form(self.ask, pool, target)
                body = encode(body_of(target.dialect, self.ask, target.model_name))
                reply = await pool.post(pool.address.post(path_of(target.dialect), body), self)
        except TimeoutError:
            self._fail("timeout", f"no token for {target.stall_seconds:g} s, or slower than a token a second")
        except AnswerError as error:
            self._fail("failed", f"reported in the stream: {error}")
        except OSError as error:
            self.connection_lost = True
            self._fail("failed", f"connection lost: {type(error).__name__}: {error}")
        except BadResponseError as error:
            self._fail("failed", str(error))
        except ValueError as error:
            self._fail("failed", f"not a JSON event: {error}")
        else:
            if reply.status != 200:
                said = reply.body.decode("utf-8", errors="replace")[:300]
                self._fail("failed", f"HTTP {reply.status}: {said}")
            else:
                self._judge_end()
        finally:
            self._watching.cancel()
        if self.end_seconds is None:
            self.end_seconds = time.monotonic() - self.origin

    def sent(self, seconds: float) -> None:
        """Take the time at which the request begins to leave."""
        self.sent_seconds = seconds - self.origin

    def received(self, body: bytes, seconds: float) -> None:
        """Take a piece of the stream. Raises AnswerError, and ValueError for what is no JSON."""
        at = seconds - self.origin
        reader = self.reader
        for data in self._events.feed(body):
            if data == END_MARK:
                self._ended = True
                continue
            chunk = reader.read_json(data, at)
            if chunk:
                self.chunks.append(chunk)
                self._newest = seconds
            if reader.finished and self.end_seconds is None:
                self.end_seconds = at

    def _watch(self, silence: asyncio.Timeout, stall_seconds: float, slowest: float) -> None:
        """Look again whenever the silence could have become too long; a token costs no timer."""
        loop = asyncio.get_running_loop()
        until = min(self._newest, slowest) + stall_seconds
        if until <= loop.time():
            silence.reschedule(loop.time())
        else:
            self._watching = loop.call_at(until, self._watch, silence, stall_seconds, slowest)

    def _fail(self, status: RequestStatus, error: str) -> None:
        self.status, self.error = status, error

    def _judge_end(self) -> None:
        tally, asked = self.reader.tally, self.ask.max_tokens
        if tally.finish_reason is None or not self._ended:
            missing = "a finish reason" if tally.finish_reason is None else "its end mark"
            self._fail("short", f"the stream ended without {missing}")
        elif self.ask.ignore_eos and tally.output_tokens is not None and tally.output_tokens < asked:
            self._fail("short", f"{tally.output_tokens} of {asked} tokens ({tally.finish_reason})")
        else:
            self.status, self.error = "ok", None

    def record(self, *, measured: bool) -> RequestRecord:
        """Return the request's record as things stand.

        TTFT runs to the first chunk with text (or, if no token has text, to the first token); the end is
        the event with the finish reason; TPOT = (e2e - ttft) / (output tokens - 1).
        """
        tally, chunks, sent = self.reader.tally, self.chunks, self.sent_seconds
        ok = self.status == "ok"
        stream_tokens = sum(chunk.tokens for chunk in chunks)
        output_tokens = tally.output_tokens if ok or self.status == "short" else None
        total = stream_tokens if output_tokens is None else output_tokens
        first = next((c.seconds for c in chunks if c.text), chunks[0].seconds if chunks else None)
        end = self.end_seconds if self.end_seconds is not None else (chunks[-1].seconds if chunks else sent)
        intended = self.identity.intended_seconds
        begin = sent if intended is None else intended
        timed = ok and first is not None
        return RequestRecord(
            **vars(self.identity),
            measured=measured,
            status=self.status,
            finish_reason=tally.finish_reason,
            error=self.error,
            prompt_tokens=tally.prompt_tokens,
            cached_tokens=tally.cached_tokens,
            output_tokens=output_tokens,
            stream_tokens=stream_tokens,
            sent_seconds=sent,
            first_token_seconds=first,
            end_seconds=end,
            ttft_seconds=first - begin if timed and first is not None else None,
            tpot_seconds=(end - first) / (total - 1) if timed and first is not None and total > 1 else None,
            e2e_seconds=end - begin if ok else None,
            chunk_seconds=[chunk.seconds for chunk in chunks],
            chunk_tokens=spread_tokens(chunks, total, counts=self.reader.counts),
            draft_proposed=tally.draft_proposed,
            draft_accepted=tally.draft_accepted,
            verify_steps=tally.verify_steps,
            accept_histogram=tally.accept_histogram,
            text=whole_text(chunks),
            prompt_ids_sent=None if self.ask.prompt_ids is None else len(self.ask.prompt_ids),
        )


async def in_chat_form(ask: Ask, pool: Pool, target: Target) -> Ask:
    """Return the ask with its messages' tokens in the model's chat form, where the dialect needs them.

    A model without a chat form is asked with their plain text. Raises OSError, BadResponseError, ValueError.
    """
    path = chat_form_path(target.dialect)
    if path is None or ask.prompt_ids is not None:
        return ask
    whole, body = Whole(), encode(chat_form_body(ask, target.model_name))
    reply = await pool.post(pool.address.post(path, body), whole)
    answer = decode(whole.body) if reply.status == 200 else None
    return replace(ask, prompt_ids=chat_form(answer))


def whole_text(chunks: list[Chunk]) -> str:
    """Return the chunks' text; surrogate pairs that were cut apart are joined, lone halves are U+FFFD."""
    text = "".join(chunk.text for chunk in chunks)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class Whole:
    """Receives an answer that is no stream."""

    def __init__(self) -> None:
        self.body = b""

    def sent(self, seconds: float) -> None:
        """Nobody asks when it left."""

    def received(self, body: bytes, seconds: float) -> None:  # noqa: ARG002
        """Keep a piece."""
        self.body += body

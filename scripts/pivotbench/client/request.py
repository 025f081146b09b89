"""One streamed request, timed chunk by chunk."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, field, replace

from pivotbench.client.connection import Pool, Reply
from pivotbench.client.dialects import (
    UNREADABLE,
    AnswerError,
    Ask,
    Chunk,
    Tally,
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
from pivotbench.client.record import Identity, RequestRecord, RequestStatus, mended, whole_text
from pivotbench.client.sse import END_MARK, EventParser
from pivotbench.engines.endpoints import Dialect

# What a server says that knows no chat form, or whose model has none.
NO_CHAT_FORM = (400, 404)


@dataclass(frozen=True)
class Target:
    """The server that is asked: address, dialect, the name it serves, and how long silence may last."""

    url: str
    dialect: Dialect
    model_name: str
    stall_seconds: float


@dataclass(eq=False)
class Exchange:
    """A request in flight. ``origin`` is the run's start on the event loop's clock.

    ``tally`` and ``counts`` (see Reader) are the server's account once the exchange is over.
    """

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
    tally: Tally = field(default_factory=Tally)
    counts: bool = False

    def __post_init__(self) -> None:
        self._reader = reader_of(self.dialect)
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
            self._judge(reply)
        except TimeoutError:
            self._fail("timeout", f"no token for {target.stall_seconds:g} s, or slower than a token a second")
        except AnswerError as error:
            self._fail("failed", str(error))
        except OSError as error:
            self.connection_lost = True
            self._fail("failed", f"connection lost: {type(error).__name__}: {error}")
        except BadResponseError as error:
            self._fail("failed", str(error))
        finally:
            self._watching.cancel()
            self.counts = self._reader.counts
            if self.status not in ("ok", "short"):
                with contextlib.suppress(*UNREADABLE):
                    self.tally = self._reader.tally
        if self.end_seconds is None:
            self.end_seconds = time.monotonic() - self.origin

    def sent(self, seconds: float) -> None:
        """Take the time at which the request begins to leave."""
        self.sent_seconds = seconds - self.origin

    def received(self, body: bytes, seconds: float) -> None:
        """Take a piece of the stream. Raises AnswerError."""
        at = seconds - self.origin
        reader = self._reader
        for data in self._events.feed(body):
            if data == END_MARK:
                self._ended = True
                continue
            try:
                chunk = reader.read_json(data, at)
            except UNREADABLE as error:
                raise unreadable(error) from None
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
        self.status, self.error = status, mended(error)

    def _judge(self, reply: Reply) -> None:
        """Set status and tally by how the answer ended. Raises AnswerError."""
        if reply.status != 200:
            self._fail("failed", http_error(reply))
            return
        try:
            self.tally = tally = self._reader.tally
        except UNREADABLE as error:
            raise unreadable(error) from None
        asked = self.ask.max_tokens
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
        tally, chunks, sent = self.tally, self.chunks, self.sent_seconds
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
            finish_reason=tally.finish_reason and mended(tally.finish_reason),
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
            chunk_tokens=spread_tokens(chunks, total, counts=self.counts),
            draft_proposed=tally.draft_proposed,
            draft_accepted=tally.draft_accepted,
            verify_steps=tally.verify_steps,
            accept_histogram=tally.accept_histogram,
            text=whole_text(chunks),
            prompt_ids_sent=None if self.ask.prompt_ids is None else len(self.ask.prompt_ids),
        )


async def in_chat_form(ask: Ask, pool: Pool, target: Target) -> Ask:
    """Return the ask with its messages' tokens in the model's chat form, where the dialect needs them.

    A model without a chat form is asked with their plain text. Raises OSError, BadResponseError.
    """
    path = chat_form_path(target.dialect)
    if path is None or ask.prompt_ids is not None:
        return ask
    whole, body = Whole(), encode(chat_form_body(ask, target.model_name))
    reply = await pool.post(pool.address.post(path, body), whole)
    if reply.status in NO_CHAT_FORM:
        return ask
    if reply.status != 200:
        raise BadResponseError(f"asked for the chat form: {http_error(reply)}")
    try:
        return replace(ask, prompt_ids=chat_form(decode(whole.body)))
    except ValueError as error:
        raise BadResponseError(f"asked for the chat form: not JSON: {error}") from None


def http_error(reply: Reply) -> str:
    """Return the status of an answer that is none, and the beginning of what the server said with it."""
    return f"HTTP {reply.status}: {reply.body.decode('utf-8', errors='replace')[:300]}"


def unreadable(error: Exception) -> AnswerError:
    """Return the error of an answer that could not be read for what ``error`` says."""
    return AnswerError(f"unreadable event: {type(error).__name__}: {str(error)[:300]}")


class Whole:
    """Receives an answer that is no stream."""

    def __init__(self) -> None:
        self.body = b""

    def sent(self, seconds: float) -> None:
        """Nobody asks when it left."""

    def received(self, body: bytes, seconds: float) -> None:  # noqa: ARG002
        """Keep a piece."""
        self.body += body

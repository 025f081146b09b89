"""Answers to a few questions, one after the other: what the smoke stage judges."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pivotbench.client.connection import Pool
from pivotbench.client.dialects import Ask
from pivotbench.client.record import Identity, RequestStatus
from pivotbench.client.request import Exchange, Target
from pivotbench.engines.base import Alternative
from pivotbench.engines.endpoints import Dialect
from pivotbench.pace import STALL_SECONDS
from pivotbench.results import Reason


@dataclass(frozen=True)
class Answer:
    """One answer; ``token_ids`` only where the server gave one for every token, the end token aside.

    ``logprobs`` and ``alternatives`` (the likeliest tokens, the chosen one among them) belong to those ids.
    """

    ask: str
    text: str
    token_ids: list[int] | None
    finish_reason: str | None
    output_tokens: int | None
    status: RequestStatus
    error: str | None
    logprobs: list[float | None] | None = None
    alternatives: list[list[Alternative]] | None = None


@dataclass
class Interview:
    """All answers by prompt, in the order they were given, and why asking ended early.

    ``logprobs_refused``: what the server said when it would not answer with logprobs, but did without.
    """

    answers: list[list[Answer]] = field(default_factory=list)
    failure: Reason | None = None
    logprobs_refused: str | None = None


def generate(
    url: str,
    dialect: Dialect,
    model_name: str,
    prompts: Sequence[str],
    max_tokens: int,
    *,
    repeats: int = 1,
    alive: Callable[[], bool],
    stall_seconds: float = STALL_SECONDS,
) -> Interview:
    """Ask all prompts in order, greedily, ``repeats`` times over.

    The first time token ids and logprobs are asked for; some kinds of speculation refuse that, and then
    everything is asked without. The repeats are plain, as users ask. Asking ends early when the server died
    (server_died) or was silent for ``stall_seconds`` (timeout); any other failure is in the answer's status.
    """
    interviewer = _Interviewer(Target(url, dialect, model_name, stall_seconds), max_tokens, alive)
    return asyncio.run(interviewer.run(prompts, repeats))


class _Interviewer:
    def __init__(self, target: Target, max_tokens: int, alive: Callable[[], bool]) -> None:
        self._target = target
        self._max_tokens = max_tokens
        self._alive = alive
        self._said = Interview()

    async def run(self, prompts: Sequence[str], repeats: int) -> Interview:
        said = self._said
        with contextlib.closing(Pool(self._target.url)) as pool:
            for repeat in range(repeats):
                for index, prompt in enumerate(prompts):
                    if repeat == 0:
                        said.answers.append([])
                    detailed = repeat == 0 and said.logprobs_refused is None
                    answer = await self._ask(pool, prompt, detailed)
                    if detailed and answer.status == "failed" and said.failure is None:
                        refused, answer = answer.error, await self._ask(pool, prompt, False)
                        if answer.status == "ok":
                            said.logprobs_refused = refused
                    said.answers[index].append(answer)
                    if said.failure is not None:
                        return said
        return said

    async def _ask(self, pool: Pool, prompt: str, detailed: bool) -> Answer:
        message = {"role": "user", "content": prompt}
        ask = Ask((message,), self._max_tokens, ignore_eos=False, token_ids=detailed)
        identity = Identity("smoke", "text", 1, 0, prompt)
        exchange = Exchange(identity, ask, self._target.dialect, asyncio.get_running_loop().time())
        asking = asyncio.create_task(exchange.run(pool, self._target))
        died = False
        while not asking.done() and not died:
            await asyncio.wait({asking}, timeout=0.25)
            died = not asking.done() and not await asyncio.to_thread(self._alive)
        asking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asking
        if died or (exchange.connection_lost and await self._is_gone()):
            with_what = " with logprobs" if detailed else ""
            self._said.failure = Reason.of(
                "server_died", f"the server's process ended while it answered {prompt!r}{with_what}"
            )
        elif exchange.status == "timeout":
            self._said.failure = Reason.of("timeout", f"{exchange.error} (asked {prompt!r})")
        return _answer(prompt, exchange)

    async def _is_gone(self) -> bool:
        for _ in range(20):
            if not await asyncio.to_thread(self._alive):
                return True
            await asyncio.sleep(0.05)
        return False


def _answer(prompt: str, exchange: Exchange) -> Answer:
    record, tally = exchange.record(measured=True), exchange.tally
    ids, logprobs, alternatives = tally.token_ids, tally.logprobs, tally.alternatives
    with_text = (record.output_tokens or 0) - (record.finish_reason == "stop")
    whole = ids is not None and len(ids) >= with_text
    return Answer(
        ask=prompt,
        text=record.text,
        token_ids=ids if whole else None,
        finish_reason=record.finish_reason,
        output_tokens=record.output_tokens,
        status=record.status,
        error=record.error,
        logprobs=list(logprobs) if whole and logprobs and ids and len(logprobs) == len(ids) else None,
        alternatives=alternatives
        if whole and alternatives and ids and len(alternatives) == len(ids)
        else None,
    )

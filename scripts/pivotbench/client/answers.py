"""Answers to a few questions, one after the other: what the smoke stage judges."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pivotbench.client.dialects import Ask
from pivotbench.client.request import Exchange, Identity, RequestStatus, Target, new_session
from pivotbench.engines.base import Dialect
from pivotbench.results import Reason


@dataclass(frozen=True)
class Answer:
    """One answer; ``token_ids`` only where the server gave one for every token, the end token aside."""

    ask: str
    text: str
    token_ids: list[int] | None
    finish_reason: str | None
    output_tokens: int | None
    status: RequestStatus
    error: str | None


def generate(
    url: str,
    dialect: Dialect,
    model_name: str,
    prompts: Sequence[str],
    max_tokens: int,
    *,
    alive: Callable[[], bool],
    stall_seconds: float = 60.0,
) -> tuple[list[Answer], Reason | None]:
    """Ask the prompts in order, greedily, and return the answers and why asking ended early.

    It ends early when the server died (server_died) or was silent for ``stall_seconds`` (timeout). Any
    other failure is in the answer's status and error.
    """
    return asyncio.run(_generate(Target(url, dialect, model_name, stall_seconds), prompts, max_tokens, alive))


async def _generate(
    target: Target, prompts: Sequence[str], max_tokens: int, alive: Callable[[], bool]
) -> tuple[list[Answer], Reason | None]:
    answers: list[Answer] = []
    async with new_session(1) as session:
        for index, prompt in enumerate(prompts):
            ask = Ask(({"role": "user", "content": prompt},), max_tokens, ignore_eos=False, token_ids=True)
            identity = Identity("smoke", "text", 1, index, str(index))
            exchange = Exchange(identity, ask, target.dialect, asyncio.get_running_loop().time())
            asking = asyncio.create_task(exchange.run(session, target))
            died = False
            while not asking.done() and not died:
                await asyncio.wait({asking}, timeout=0.25)
                died = not asking.done() and not await asyncio.to_thread(alive)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            answers.append(_answer(prompt, exchange))
            if died or (exchange.connection_lost and await _is_gone(alive)):
                return answers, Reason.of(
                    "server_died", f"the server's process ended while it answered {prompt!r}"
                )
            if exchange.status == "timeout":
                return answers, Reason.of("timeout", f"{exchange.error} (asked {prompt!r})")
    return answers, None


async def _is_gone(alive: Callable[[], bool]) -> bool:
    for _ in range(20):
        if not await asyncio.to_thread(alive):
            return True
        await asyncio.sleep(0.05)
    return False


def _answer(prompt: str, exchange: Exchange) -> Answer:
    record, ids = exchange.record(measured=True), exchange.reader.tally.token_ids
    with_text = (record.output_tokens or 0) - (record.finish_reason == "stop")
    return Answer(
        ask=prompt,
        text=record.text,
        token_ids=ids if ids is not None and len(ids) >= with_text else None,
        finish_reason=record.finish_reason,
        output_tokens=record.output_tokens,
        status=record.status,
        error=record.error,
    )

"""All workloads at all concurrencies and rates, one run after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pivotbench.client.closed_loop import ClosedLoop
from pivotbench.client.dialects import takes_ids
from pivotbench.client.loop import Errand, Loop
from pivotbench.client.open_files import open_files
from pivotbench.client.open_loop import MOST_IN_FLIGHT, OpenLoop
from pivotbench.client.plan import LoadOutcome, LoadPlan, WorkloadPlan
from pivotbench.client.request import Target
from pivotbench.client.summary import run_entry
from pivotbench.client.tokenizer import count_by_text, vocabulary
from pivotbench.client.witness import Witness
from pivotbench.engines.endpoints import Dialect
from pivotbench.errors import UserError
from pivotbench.workloads import (
    Prompt,
    Prompts,
    TextPrompts,
    TokenPrompts,
    Vocabulary,
    WordPrompts,
    load_prompts,
)

# What the client has open beside its connections: event loops, logs, the parquet files it writes.
OTHER_FILES = 128


def measure(
    url: str,
    dialects: Sequence[Dialect],
    model_name: str,
    plan: LoadPlan,
    *,
    alive: Callable[[], bool],
    progress: Callable[[str], None],
    witness: Witness | None = None,
) -> LoadOutcome:
    """Measure a running server under the plan's load and return runs, records and why it ended early.

    Requests go out in the first of ``dialects``, synthetic ones in the first that takes token ids.
    ``alive`` is asked four times a second, and at once when a connection is lost. Its death, silence for
    ``plan.stall_seconds`` and a row of failed requests end everything; what was measured until then is
    returned. Raises UserError for a prompt file that cannot be used, before anything is sent.
    """
    texts = {workload.name: _texts(workload) for workload in plan.workloads if workload.prompts}
    target = Target(url, dialects[0], model_name, plan.stall_seconds)
    for_ids = next((dialect for dialect in dialects if takes_ids(dialect)), None)
    return asyncio.run(_measure(target, for_ids, plan, texts, alive, progress, witness))


def _most_in_flight(plan: LoadPlan) -> int:
    """Return how many requests an open loop may have in flight; make room for those of closed ones."""
    most = max((c for workload in plan.workloads for c in workload.concurrency), default=0)
    room = open_files(max(most, MOST_IN_FLIGHT) + OTHER_FILES) - OTHER_FILES
    if most > room:
        raise UserError(
            f"concurrency {most} needs as many open files and {OTHER_FILES} more, this machine allows "
            f"{room + OTHER_FILES}; raise the hard limit (ulimit -Hn) or lower the concurrency"
        )
    return min(room, MOST_IN_FLIGHT)


def _texts(workload: WorkloadPlan) -> list[Prompt]:
    assert workload.prompts is not None
    prompts = load_prompts(workload.prompts)
    if workload.rate and any(prompt.later for prompt in prompts):
        raise UserError(
            f"{workload.prompts}: a conversation's next turn waits for an answer, so it has no rate; "
            f"give workload {workload.name} a concurrency instead"
        )
    return prompts


async def _measure(
    target: Target,
    for_ids: Dialect | None,
    plan: LoadPlan,
    texts: Mapping[str, list[Prompt]],
    alive: Callable[[], bool],
    progress: Callable[[str], None],
    witness: Witness | None,
) -> LoadOutcome:
    outcome = LoadOutcome([], [], None)
    most_in_flight = _most_in_flight(plan)
    words: Vocabulary | None = None
    if for_ids is not None and any(workload.kind == "synthetic" for workload in plan.workloads):
        words = await vocabulary(target)
    for workload in plan.workloads:
        asked = target
        if workload.kind == "synthetic" and words is not None and for_ids is not None:
            asked = replace(target, dialect=for_ids)
        for loop in _loops(asked, workload, plan, texts.get(workload.name), words, most_in_flight, alive):
            progress(f"{loop.where}: warming up, then measuring for at least {plan.seconds:g} s")
            if witness:
                witness.begin()
            measured = await loop.run()
            outcome.records.extend(loop.records)
            if loop.records:
                by_text = None if loop.reason else await count_by_text(asked, loop.records)
                run = run_entry(loop.records, measured, plan.windows, by_text)
                if witness:
                    witness.testify(run, loop.records)
                outcome.runs.append(run)
                progress(f"{loop.where}: {_rates(run)}")
            if loop.reason:
                return LoadOutcome(outcome.runs, outcome.records, loop.reason)
    return outcome


def _loops(
    target: Target,
    workload: WorkloadPlan,
    plan: LoadPlan,
    texts: list[Prompt] | None,
    words: Vocabulary | None,
    most_in_flight: int,
    alive: Callable[[], bool],
) -> Iterator[Loop]:
    def prompts(pace: float) -> Prompts:
        seed = f"{plan.seed}/{workload.name}"
        if texts is not None:
            return TextPrompts(texts, seed)
        shape = workload.prompt_tokens, workload.shared_prefix, f"{seed}/{pace:g}"
        return WordPrompts(*shape) if words is None else TokenPrompts(words, *shape)

    for concurrency in workload.concurrency:
        yield ClosedLoop(Errand(target, workload, plan, prompts(concurrency), alive), concurrency)
    for rate in workload.rate:
        yield OpenLoop(Errand(target, workload, plan, prompts(rate), alive), rate, most_in_flight)


def _rates(run: dict[str, Any]) -> str:
    rates = ", ".join(f"{window['output_tok_s']:.1f}" for window in run["windows"])
    warmup = run["warmup"]
    anew = f", anew after {warmup['stood_still_seconds']:.1f} s without a token" if warmup["restarts"] else ""
    return (f"{rates} tok/s" if rates else "not measured") + anew

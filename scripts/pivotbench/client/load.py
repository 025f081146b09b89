"""All workloads at all concurrencies, one run after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import psutil

from pivotbench.client.closed_loop import ClosedLoop
from pivotbench.client.plan import LoadOutcome, LoadPlan, WorkloadPlan
from pivotbench.client.request import Target
from pivotbench.client.summary import run_entry
from pivotbench.engines.base import Dialect
from pivotbench.workloads import Prompt, PromptOrder, load_prompts, synthetic_prompts


def measure(
    url: str,
    dialect: Dialect,
    model_name: str,
    plan: LoadPlan,
    *,
    alive: Callable[[], bool],
    progress: Callable[[str], None],
) -> LoadOutcome:
    """Measure a running server under the plan's load and return runs, records and why it ended early.

    ``alive`` is asked four times a second, and at once when a connection is lost. Its death, silence for
    ``plan.stall_seconds`` and a row of failed requests end everything; what was measured until then is
    returned. Raises UserError for a prompt file that cannot be used, before anything is sent.
    """
    prompts = {workload.name: _prompts(workload, plan.seed) for workload in plan.workloads}
    return asyncio.run(
        _measure(Target(url, dialect, model_name, plan.stall_seconds), plan, prompts, alive, progress)
    )


def _prompts(workload: WorkloadPlan, seed: str) -> list[Prompt]:
    if workload.prompts is not None:
        return load_prompts(workload.prompts)
    assert workload.prompt_tokens is not None
    return synthetic_prompts(workload.prompt_tokens, seed)


async def _measure(
    target: Target,
    plan: LoadPlan,
    prompts: dict[str, list[Prompt]],
    alive: Callable[[], bool],
    progress: Callable[[str], None],
) -> LoadOutcome:
    outcome = LoadOutcome([], [], None)
    for workload in plan.workloads:
        order = PromptOrder(prompts[workload.name], f"{plan.seed}/{workload.name}")
        for concurrency in workload.concurrency:
            loop = ClosedLoop(target, workload, concurrency, plan, order, alive)
            where = f"{workload.name} at concurrency {concurrency}"
            progress(f"{where}: warming up, then measuring for at least {plan.seconds:g} s")
            psutil.cpu_percent()
            measured = await loop.run()
            telemetry = {"cpu_percent": psutil.cpu_percent()}
            outcome.records.extend(loop.records)
            if loop.records:
                run = run_entry(loop.records, measured, plan.windows, telemetry)
                outcome.runs.append(run)
                progress(f"{where}: {_rates(run)}")
            if loop.reason:
                return LoadOutcome(outcome.runs, outcome.records, loop.reason)
    return outcome


def _rates(run: dict[str, Any]) -> str:
    rates = ", ".join(f"{window['output_tok_s']:.1f}" for window in run["windows"])
    return f"{rates} tok/s" if rates else "not measured"

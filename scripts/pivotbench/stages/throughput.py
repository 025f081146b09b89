"""Throughput: each workload at each concurrency, timed by the client as a user sees it."""

from __future__ import annotations

from typing import Any

from pivotbench.client import LoadPlan, measure, spoken, write_requests
from pivotbench.client.witness import Witness
from pivotbench.engines import get_engine
from pivotbench.engines.base import simulates_drafts
from pivotbench.engines.endpoints import ENDPOINTS
from pivotbench.lease.state import Record
from pivotbench.results import Reason, Stage
from pivotbench.stages.context import Context, failed_launch
from pivotbench.stages.ending import died_or
from pivotbench.telemetry import Sampler, write_readings
from pivotbench.workloads import load_in_words

EARLIER: tuple[Stage, ...] = ("launch", "smoke")
REQUESTS = "requests.parquet"
TELEMETRY = "telemetry.parquet"


def throughput(context: Context) -> None:
    """Measure every workload on the cell's server; keep every request and every reading of its hardware."""
    raw, seen = context.folder / REQUESTS, context.folder / TELEMETRY
    raw.unlink(missing_ok=True)
    seen.unlink(missing_ok=True)
    for stage in EARLIER:
        earlier = context.read(stage)
        if earlier["status"] != "ok":
            context.skip_after(stage, earlier)
            return
    server = context.ensure()
    if isinstance(server, Record):
        reason, block = failed_launch(server)
        context.write("failed", reason=reason, server=block, runs=[], requests_file=None, telemetry_file=None)
        return
    try:
        plan = _plan(context)
        engine = get_engine(context.request["engine"])
        endpoint = context.work.get("endpoint")
        asked = engine.dialects if endpoint is None else (ENDPOINTS[endpoint],)
        dialects, unspoken = spoken(server.url, server.served_name, asked)
        with Sampler(server.gpus(), server.pids) as sampler:
            witness = Witness(
                sampler,
                lambda: engine.draft_counters(server.url),
                lambda timeout_seconds: engine.requests_held(server.url, timeout_seconds),
            )
            outcome = measure(
                server.url,
                dialects,
                server.served_name,
                plan,
                alive=server.alive,
                progress=context.progress,
                witness=witness,
            )
        if simulates_drafts(engine, context.request["env"]):
            for run in outcome.runs:
                run["acceptance"]["simulated"] = run["acceptance"]["length"] is not None
        speed_only = context.work.get("speed_only", False)
        garbage = None if speed_only else _garbage(outcome.runs)
        broken = outcome.reason
        if broken is None and not server.alive():
            broken = Reason.of("server_died", "the server's process ended before its answers were counted")
        failure = died_or(server, broken) if broken else garbage
        context.write(
            "failed" if failure else "ok",
            reason=failure,
            server=context.server_block(server),
            runs=outcome.runs,
            requests_file=write_requests(raw, outcome.records, context.secrets) if outcome.records else None,
            telemetry_file=write_readings(seen, witness.runs) if witness.runs else None,
            speed_only=speed_only,
            asked=context.work,
            dialect=dialects[0],
            unspoken=unspoken,
        )
    finally:
        server.release()


def _plan(context: Context) -> LoadPlan:
    workloads = dict(context.work["workloads"])
    for name, path in context.host["prompts"].items():
        workloads[name] = {**workloads[name], "prompts": path}
    # Another order of prompts in each round, the same for every configuration.
    seed = f"{context.work['seed']}/r{context.cell['round']}"
    return LoadPlan.from_json({**context.work, "workloads": workloads}, seed=seed)


def _garbage(runs: list[dict[str, Any]]) -> Reason | None:
    for run in runs:
        answers = run["answers"]
        if answers["bad"]:
            first, count = answers["first"], max(answers["bad"].values())
            return Reason.of(
                "garbage_under_load",
                f"{count} of {answers['inspected']} answers under load are garbage ({load_in_words(run)}: "
                f"{', '.join(answers['bad'])}), first that to {first['prompt_id']}",
                (first["text"][:200],),
            )
    return None

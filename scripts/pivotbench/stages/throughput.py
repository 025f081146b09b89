"""Throughput: each workload at each concurrency, timed by the client as a user sees it."""

from __future__ import annotations

from typing import Any

from pivotbench.client import LoadPlan, measure, write_requests
from pivotbench.engines import get_engine
from pivotbench.lease.state import Record
from pivotbench.results import Reason, Stage
from pivotbench.stages.context import Context, failed_launch
from pivotbench.stages.ending import died_or

EARLIER: tuple[Stage, ...] = ("launch", "smoke")
REQUESTS = "requests.parquet"


def throughput(context: Context) -> None:
    """Measure every workload on the cell's server; keep every request in requests.parquet."""
    raw = context.folder / REQUESTS
    raw.unlink(missing_ok=True)
    for stage in EARLIER:
        earlier = context.read(stage)
        if earlier["status"] != "ok":
            context.skip_after(stage, earlier)
            return
    server = context.ensure()
    if isinstance(server, Record):
        reason, block = failed_launch(server)
        context.write("failed", reason=reason, server=block, runs=[], requests_file=None)
        return
    try:
        plan = _plan(context)
        engine = get_engine(context.request["engine"])
        outcome = measure(
            server.url, engine.dialect, server.served_name, plan, alive=server.alive, progress=context.say
        )
        kept = None
        if outcome.records:
            kept = write_requests(raw, outcome.records)
        failure = died_or(server, outcome.reason) if outcome.reason else _garbage(outcome.runs)
        context.write(
            "failed" if failure else "ok",
            reason=failure,
            server=context.server_block(server),
            runs=outcome.runs,
            requests_file=kept,
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
        if run["garbage"]:
            where = f"{run['workload']} at concurrency {run['concurrency']}"
            return Reason.of(
                "garbage", f"answers under load are garbage ({where}: {', '.join(run['garbage'])})"
            )
    return None

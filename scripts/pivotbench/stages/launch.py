"""Launch: a cold start of the cell's server, and what it said about itself when it was ready."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pivotbench.engines import get_engine
from pivotbench.host import describe
from pivotbench.lease.ensure import stop
from pivotbench.lease.state import Record
from pivotbench.model_facts import model_facts
from pivotbench.preflight import preflight
from pivotbench.stages.context import Context, failed_launch


def launch(context: Context) -> None:
    """Start the server anew and leave it running for the stages that follow.

    What the preflight expects is said and recorded; it keeps a server from being tried only where the study
    asks for that.
    """
    stop(key=context.key, owner=str(context.owner))
    engine = get_engine(context.request["engine"])
    environment = describe(
        engine.name, engine.installed_version(Path(context.host["python"])), context.host["model"]
    )
    expected = preflight(
        context.request, context.host["model"], environment["engine_version"], environment["gpus"]
    )
    for finding in expected.findings:
        context.say(f"preflight: {finding.outcome}: {finding.message}")
    refusal = expected.refusal() if context.host.get("preflight") == "refuse" else None
    if refusal is not None:
        context.write(
            "failed",
            reason=refusal,
            ready_seconds=None,
            phases=[],
            command=None,
            requested=context.request["flags"],
            overrides=[],
            memory=None,
            preflight=expected.as_json(),
            environment=environment,
        )
        return
    context.say("starting the server")
    server = context.ensure()
    if isinstance(server, Record):
        reason, block = failed_launch(server)
        context.write(
            "failed",
            reason=reason,
            server=block,
            ready_seconds=None,
            phases=server.phases,
            command=server.command,
            requested=context.request["flags"],
            overrides=[],
            memory=server.memory,
            preflight=expected.as_json(),
            environment=environment,
        )
        return
    try:
        facts = server.facts
        context.write(
            "ok",
            server=context.server_block(server),
            ready_seconds=facts["ready_seconds"],
            phases=facts["phases"],
            command=facts["command"],
            requested=context.request["flags"],
            overrides=overrides(context.request["flags"], facts["effective"]),
            memory=facts["memory"],
            model=model_facts(
                engine.spelling,
                context.host["model"],
                context.request["model"]["revision"],
                context.request["flags"],
                facts["effective"],
            ),
            preflight=expected.as_json(),
            environment=environment,
        )
    finally:
        server.release()


def overrides(requested: dict[str, Any], effective: dict[str, Any]) -> list[dict[str, Any]]:
    """Return every requested flag whose value in effect is another, with where that was read.

    A flag the server does not report is left out: nothing is known of it. ``auto`` leaves the
    choice to the engine, so what it chose is no override.
    """
    found = []
    reported = {name.replace("_", "-"): value for name, value in effective.items()}
    for name, value in sorted(requested.items()):
        key = name.replace("_", "-")
        if key not in reported or str(value).lower() == "auto":
            continue
        if _spelled(reported[key]) != _spelled(value):
            found.append(
                {"flag": name, "requested": value, "effective": reported[key], "source": "server_info"}
            )
    return found


def _spelled(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    text = str(value).lower()
    return {"true": "on", "false": "off", "enabled": "on", "disabled": "off"}.get(text, text)

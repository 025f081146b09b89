"""Launch: a cold start of the cell's server, and what it said about itself when it was ready."""

from __future__ import annotations

from typing import Any

from pivotbench.engines import get_engine
from pivotbench.engines.base import Engine
from pivotbench.engines.catalogue import FlagCatalogue
from pivotbench.errors import UserError
from pivotbench.installations import kept_flags, known_versions, read_flags
from pivotbench.lease.ensure import stop
from pivotbench.lease.slot import complaints
from pivotbench.lease.state import Record
from pivotbench.machine.containers import image_identity
from pivotbench.machine.host import describe
from pivotbench.model_facts import model_facts
from pivotbench.preflight import preflight
from pivotbench.stages.context import Context, failed_launch
from pivotbench.stages.overrides import deprecations, overrides


def launch(context: Context) -> None:
    """Start the server anew and leave it running for the stages that follow.

    What the preflight expects is said and recorded; it keeps a server from being tried only where the study
    asks for that.
    """
    stop(key=context.key, owner=str(context.owner))
    engine = get_engine(context.request["engine"])
    environment, catalogue = _installed(context, engine)
    requested = context.request["flags"]
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
            requested=requested,
            overrides=[],
            deprecated=deprecations(requested, catalogue),
            ranks_differ={},
            memory=None,
            preflight=expected.as_json(),
            environment=environment,
        )
        return
    context.progress("starting the server")
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
            requested=requested,
            overrides=[],
            deprecated=deprecations(requested, catalogue),
            ranks_differ={},
            memory=server.memory,
            slot=server.slot,
            preflight=expected.as_json(),
            environment=environment,
        )
        return
    try:
        facts = server.facts
        for line in complaints(facts["slot"]):
            context.say(line)
        context.write(
            "ok",
            server=context.server_block(server),
            ready_seconds=facts["ready_seconds"],
            phases=facts["phases"],
            command=facts["command"],
            requested=requested,
            overrides=overrides(
                requested, facts["effective"], engine.changes(facts["effective"], _log(context)), catalogue
            ),
            deprecated=deprecations(requested, catalogue),
            ranks_differ=engine.rank_differences(facts["effective"]),
            memory=facts["memory"],
            slot=facts["slot"],
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


def _installed(context: Context, engine: Engine) -> tuple[dict[str, Any], FlagCatalogue | None]:
    """Return this node's environment for the launch, and the engine's flags where they are known here.

    An image that is not on this node is fetched now, so that its download is no part of the launch.
    """
    installed, env = context.installation, context.request["env"]
    image = None
    if installed.container is None:
        catalogue = kept_flags(engine, installed, env)
    else:
        context.progress(f"image {installed.container.image}")
        try:
            catalogue = read_flags(engine, installed, env)
        except UserError as error:
            # The launch will fail by it, which is a result.
            catalogue = None
            context.say(str(error))
        image = image_identity(installed.container)
    version, packages = known_versions(engine, installed, env)
    model = context.host["model"]
    return describe(engine.name, version, model, packages=packages, image=image), catalogue


def _log(context: Context) -> list[str]:
    try:
        log = (context.logs / f"{context.stage}.log").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return log.splitlines()

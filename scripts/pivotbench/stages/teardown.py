"""Teardown: the end of the server that throughput used, and the proof that it is gone."""

from __future__ import annotations

from typing import Any

from pivotbench.lease.ensure import record_path, stop
from pivotbench.lease.occupants import MEMORY_SLACK_MIB
from pivotbench.lease.state import Record, read_record
from pivotbench.results import PREFLIGHT_REFUSED, Reason, Stage
from pivotbench.stages.context import Context

EARLIER: tuple[Stage, ...] = ("throughput", "smoke", "launch")


def teardown(context: Context) -> None:
    """Stop what is left of the cell's servers and report how the measured one ended.

    With nothing to stop, the record that its supervisor left behind is the report. Where the preflight kept
    the server from being launched there is none.
    """
    stop(key=context.key)  # of a killed run too: its supervisor may be at work on the record
    launch = context.read("launch")
    if (launch["reason"] or {}).get("code") == PREFLIGHT_REFUSED:
        context.skip_after("launch", launch)
        return
    block = _measured_server(context)
    record = read_record(record_path(context.logs, block["launch_id"])) if block else None
    if block is None or record is None:
        context.write(
            "failed",
            reason=Reason(
                "record_missing",
                "transient",
                "no record tells how the measured server ended: run the cell again",
            ),
            server=block,
        )
        return
    reason = None if record.released else Reason.of("leaked", _leak(record))
    context.write("failed" if reason else "ok", reason=reason, server=block, **report(record))


def _measured_server(context: Context) -> dict[str, Any] | None:
    for stage in EARLIER:
        block: dict[str, Any] | None = context.read(stage)["server"]
        if block is not None:
            return block
    return None


def report(record: Record) -> dict[str, Any]:
    """Return the teardown keys of a launch's record."""
    return {
        "verdict": "released" if record.released else "leaked",
        "why": record.why,
        "signals": record.signals,
        "seconds": record.teardown_seconds,
        "exit_code": record.exit_code,
        "processes_left": record.processes_left,
        "port_closed": record.port_closed,
        "port_held_by": record.port_held_by,
        "memory": record.memory,
        "launch_id": record.launch_id,
    }


def _leak(record: Record) -> str:
    held = []
    if record.processes_left:
        held.append(f"{len(record.processes_left)} processes ({', '.join(record.processes_left)})")
    if not record.port_closed:
        held.append(f"its port still answers{_by(record.port_held_by)}")
    if (users := record.memory.get("held_by")) is not None or not held:
        held.append(
            f"GPU memory did not return to its level before the launch{_more(record)}{_by(users or [])}"
        )
    return "the server is not gone: " + "; ".join(held)


def _more(record: Record) -> str:
    after_mib = record.memory.get("after_mib", {})
    more_mib = {u: after_mib.get(u, 0) - held for u, held in record.memory.get("before_mib", {}).items()}
    words = [f"{mib} MiB more on {uuid}" for uuid, mib in sorted(more_mib.items()) if mib > MEMORY_SLACK_MIB]
    return f": {', '.join(words)}" if words else ""


def _by(users: list[str]) -> str:
    return f" ({', '.join(users)})" if users else ""

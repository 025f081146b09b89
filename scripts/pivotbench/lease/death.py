"""Why a server ended that nobody had told to."""

from __future__ import annotations

from dataclasses import replace

from pivotbench.results import Reason


def death_reason(log_lines: list[str], exit_code: int, engine: str, was_ready: bool) -> Reason:
    """Return the cause that the log of a dead server tells; one that had been ready may live next time."""
    from pivotbench.diagnose import diagnose

    reason = diagnose(log_lines, exit_code, engine)
    if not was_ready:
        return reason
    cause = "" if reason.code == "unknown" else f" ({reason.code}: {reason.message})"
    message = f"the server ended by itself with exit code {exit_code} after it was ready{cause}"
    return replace(reason, code="server_died", kind="transient", message=message)

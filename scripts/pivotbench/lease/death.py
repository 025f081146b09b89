"""Why a server ended, or never got ready, though nobody had told it to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pivotbench.results import Reason


def death_reason(log: Path, exit_code: int, engine: str, was_ready: bool) -> Reason:
    """Return the cause that the log of a dead server tells; one that had been ready may live next time."""
    from pivotbench.diagnose import diagnose_file

    if not was_ready:
        return diagnose_file(log, exit_code, engine)
    what = f"the server ended by itself with exit code {exit_code} after it was ready"
    return as_the_log_tells("server_died", what, log, exit_code, engine)


def as_the_log_tells(code: str, what: str, log: Path, exit_code: int | None, engine: str) -> Reason:
    """Return what happened, with the cause in the log's words and what helps against it, where it knows."""
    from pivotbench.diagnose import diagnose_file
    from pivotbench.reasons import remedy_for

    cause = diagnose_file(log, exit_code, engine)
    if cause.code == "unknown":
        return replace(Reason.of(code, what, cause.evidence), remedy=remedy_for(code))
    return replace(cause, code=code, kind="transient", message=f"{what} ({cause.code}: {cause.message})")

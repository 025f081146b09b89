"""Why a server ended, or never got ready, though nobody had told it to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pivotbench.redaction import redacted_log_line
from pivotbench.results import Reason


def death_reason(
    log: Path, exit_code: int, engine: str, was_ready: bool, secrets: Sequence[str] = ()
) -> Reason:
    """Return the cause that the log of a dead server tells; one that had been ready may live next time."""
    if not was_ready:
        return _cause(log, exit_code, engine, secrets)
    what = f"the server ended by itself with exit code {exit_code} after it was ready"
    return as_the_log_tells("server_died", what, log, exit_code, engine, secrets)


def as_the_log_tells(
    code: str, what: str, log: Path, exit_code: int | None, engine: str, secrets: Sequence[str] = ()
) -> Reason:
    """Return what happened, with the cause in the log's words and what helps against it, where it knows."""
    from pivotbench.diagnosis.reasons import remedy_for

    cause = _cause(log, exit_code, engine, secrets)
    if cause.code == "unknown":
        return replace(Reason.of(code, what, cause.evidence), remedy=remedy_for(code))
    return replace(cause, code=code, kind="transient", message=f"{what} ({cause.code}: {cause.message})")


def _cause(log: Path, exit_code: int | None, engine: str, secrets: Sequence[str]) -> Reason:
    """Return the cause by a log, whose words are quoted without these secrets."""
    from pivotbench.diagnosis.diagnose import diagnose_file

    cause = diagnose_file(log, exit_code, engine)
    # As one text: a key may stand on the line before its value.
    quoted = redacted_log_line("\n".join(cause.evidence), secrets).split("\n") if cause.evidence else ()
    return replace(cause, message=redacted_log_line(cause.message, secrets), evidence=tuple(quoted))

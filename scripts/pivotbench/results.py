"""What every stage file has in common: status, reason, fingerprint, times, server.

A crash, a timeout, garbage or a leak is a result with a reason, never an exception of ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from pivotbench.files import write_json
from pivotbench.redaction import redacted

SCHEMA_VERSION = 1
DECISION_SCHEMA = "pivotbench/decision/4"
# Raised when races, table, decision, charts or report come to say something else of the same cells.
DERIVATION = 3

Stage = Literal["launch", "smoke", "throughput", "teardown"]
PHASES = ("backends", "speculative")
STAGES: tuple[Stage, ...] = ("launch", "smoke", "throughput", "teardown")
Status = Literal["ok", "failed", "skipped"]
ReasonKind = Literal["deterministic", "transient"]

# A launch that was not tried, as the study asks of what the preflight expects to fail.
PREFLIGHT_REFUSED = "preflight_refused"


@dataclass(frozen=True)
class Reason:
    """Why a stage failed or was skipped.

    ``evidence`` holds log lines or answers, ``signature`` the pattern that matched (if one did),
    ``links`` addresses where the same failure is discussed, ``remedy`` what to do, where it is known.
    """

    code: str
    kind: ReasonKind
    message: str
    evidence: tuple[str, ...] = ()
    signature: str | None = None
    links: tuple[str, ...] = ()
    remedy: str | None = None

    @classmethod
    def of(cls, code: str, message: str, evidence: tuple[str, ...] = ()) -> Reason:
        """Return a reason whose kind is that of its code in reasons.yaml."""
        # Only what fails needs the catalogue; those who watch servers start without it.
        from pivotbench.diagnosis.reasons import kind_of

        return cls(code=code, kind=kind_of(code), message=message, evidence=evidence)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Reason:
        """Return the reason stored in a stage file."""
        return cls(
            code=data["code"],
            kind=data["kind"],
            message=data["message"],
            evidence=tuple(data.get("evidence", ())),
            signature=data.get("signature"),
            links=tuple(data.get("links", ())),
            remedy=data.get("remedy"),
        )


def now() -> str:
    """Return the present as an ISO 8601 UTC string with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def later(started: str, seconds: float) -> str:
    """Return the time so many seconds after ``started``, whatever has been done to the clock meanwhile."""
    moment = datetime.fromisoformat(started) + timedelta(seconds=seconds)
    return moment.isoformat(timespec="milliseconds")


def write_stage(
    path: Path,
    *,
    stage: Stage,
    status: Status,
    fingerprint: str,
    cell: dict[str, Any],
    started: str,
    ended: str,
    server: dict[str, Any] | None,
    reason: Reason | None = None,
    secrets: Sequence[str] = (),
    **body: Any,
) -> None:
    """Write one stage file with the common keys first and ``body`` after them, without these secrets."""
    write_json(
        path,
        redacted(
            {
                "schema": f"pivotbench/{stage}/{SCHEMA_VERSION}",
                "status": status,
                "reason": asdict(reason) if reason else None,
                "fingerprint": fingerprint,
                "cell": cell,
                "started": started,
                "ended": ended,
                "server": server,
                **body,
            },
            secrets,
        ),
    )

"""Why requests failed: the server's death explains more than a broken connection does."""

from __future__ import annotations

from pivotbench.lease.ensure import Server, final_record
from pivotbench.results import Reason


def died_or(server: Server, reason: Reason) -> Reason:
    """Return the cause of the server's death where it died, else ``reason`` as it is."""
    if reason.code != "server_died" and server.alive():
        return reason
    record = final_record(server)
    if record is None or record.reason is None:
        return reason
    return Reason.from_json(record.reason)

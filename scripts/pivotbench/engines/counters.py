"""What a server itself has counted, of its drafts above all, from the Prometheus text of its ``/metrics``."""

from __future__ import annotations

import http.client
import math
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

TIMEOUT_SECONDS = 2.0

# name{labels} value [time]; a label's value may hold any character, so the last brace is the one that ends.
_SAMPLE = re.compile(r"([A-Za-z_:][\w:]*)(?:\{.*\})?\s+(\S+)(?:\s+-?\d+)?\s*")


@dataclass(frozen=True)
class DraftCounters:
    """Tokens and drafts counted since the server's start, or between two times; None: it does not count that.

    ``verify_steps`` are target forward passes in decoding, each request's counted for itself. ``in_flight``
    is how many requests it is at work on, whose counts are still to come.
    """

    output_tokens: int
    verify_steps: int | None = None
    proposed: int | None = None
    accepted: int | None = None
    in_flight: int | None = None

    @property
    def drafting(self) -> bool:
        """Whether anything was drafted or verified."""
        return bool(self.verify_steps or self.proposed)

    @property
    def length(self) -> float | None:
        """Output tokens per target forward pass; passes that are not counted are tokens minus accepted."""
        steps = self.verify_steps
        if steps is None and self.accepted is not None:
            steps = self.output_tokens - self.accepted
        return self.output_tokens / steps if steps else None

    def since(self, before: DraftCounters) -> DraftCounters:
        """Return what was counted after ``before``; a counter may appear with its first event."""

        def grown(now: int | None, then: int | None) -> int | None:
            return None if now is None else now - (then or 0)

        return DraftCounters(
            output_tokens=self.output_tokens - before.output_tokens,
            verify_steps=grown(self.verify_steps, before.verify_steps),
            proposed=grown(self.proposed, before.proposed),
            accepted=grown(self.accepted, before.accepted),
        )


def read_counters(
    url: str,
    *,
    output_tokens: str,
    verify_steps: str | None = None,
    proposed: str | None = None,
    accepted: str | None = None,
    in_flight: str | None = None,
) -> DraftCounters | None:
    """Return the counters under these metric names at ``url``; None where ``/metrics`` does not answer."""
    totals = read_metrics(url)
    if totals is None:
        return None

    def count(name: str | None) -> int | None:
        return round(totals[name]) if name in totals else None

    return DraftCounters(
        output_tokens=count(output_tokens) or 0,
        verify_steps=count(verify_steps),
        proposed=count(proposed),
        accepted=count(accepted),
        in_flight=count(in_flight),
    )


def read_metrics(url: str, *, timeout_seconds: float = TIMEOUT_SECONDS) -> dict[str, float] | None:
    """Return each metric's value at ``url``, see sums; None where ``/metrics`` does not answer."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=timeout_seconds)
    try:
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    return sums(text) if answer.status == 200 else None


def sums(text: str) -> dict[str, float]:
    """Return each metric's value in Prometheus text, added up over its labels (ranks, workers).

    What is no finite number counts for nothing.
    """
    totals: dict[str, float] = {}
    for line in text.splitlines():
        if sample := _SAMPLE.fullmatch(line):
            total = totals.get(sample[1], 0.0) + _number(sample[2])
            if math.isfinite(total):
                totals[sample[1]] = total
    return totals


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan

"""When a server stands still: requests are in flight, and on none of their streams a token comes.

Kernels that are compiled for a shape met for the first time do that to a server, for seconds, and no warm-up
meets every shape. The measured time then begins anew, as often as pace.py says: what came before is warm-up.
How long a silence may be follows from the study, and is the same for all configurations but those that are
silent for so long by nature: a slow machine that reads a prompt, a server that sends an answer whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from pivotbench.client.plan import Measured
from pivotbench.client.record import RequestRecord
from pivotbench.pace import MOST_RESTARTS

# Steps grow longer with the context, and requests in flight slow each other.
SILENCE_MARGIN = 2.0


def standstills(records: Sequence[RequestRecord], begin: float, end: float, limit: float) -> list[float]:
    """Return how many seconds each standstill longer than ``limit`` took, of those from ``begin`` to ``end``.

    One that was cut was in flight until the end.
    """
    flown = [r for r in records if r.sent_seconds < end and (r.status == "cut" or r.end_seconds > begin)]
    tokens = sorted(at for r in flown for at in r.chunk_seconds if begin < at < end)
    silences = [(a, b) for a, b in pairwise([begin, *tokens, end]) if b - a > limit]
    flights = sorted((r.sent_seconds, end if r.status == "cut" else r.end_seconds) for r in flown)
    return [span for a, b in silences for span in _in_flight(flights, a, b) if span > limit]


def _in_flight(flights: Sequence[tuple[float, float]], begin: float, end: float) -> Iterator[float]:
    """Yield how many seconds each part of a time took that had one of the flights or more throughout.

    ``flights`` are (sent, ended), in order.
    """
    since = until = begin
    for sent, ended in flights:
        if sent >= end:
            break
        if sent > until:
            yield until - since
            since = until = sent
        until = max(until, min(ended, end))
    yield until - since


def _silence(record: RequestRecord) -> float:
    """Return the longest time in which an answer's own stream was silent."""
    return max((b - a for a, b in pairwise([record.sent_seconds, *record.chunk_seconds])), default=0.0)


def stood_still(records: Sequence[RequestRecord], measured: Measured) -> dict[str, Any]:
    """Return how often the server stood still in the measured time, for how long in all, and the limit.

    An open loop waits for its measured requests beyond that time; what they wait for counts.
    """
    begin, end, limit = measured.begin_seconds, measured.end_seconds, measured.standstill_seconds
    found: list[float] = []
    if begin is not None and end is not None:
        last = max([end, *(r.end_seconds for r in records if r.measured)])
        found = standstills(records, begin, last, limit)
    return {"limit_seconds": limit, "times": len(found), "seconds": sum(found, 0.0)}


class StandstillWatch:
    """Sees whether the measured time of a run must begin anew.

    ``restarts`` tells how often it did, and ``seconds`` for how long the server stood still before that.
    """

    def __init__(self, limit_seconds: float) -> None:
        self.limit_seconds = limit_seconds
        self.restarts = 0
        self.seconds = 0.0
        self._since: float | None = None
        self._silent_since: float | None = None

    def allow(self, warmup: Sequence[RequestRecord], longer: float) -> None:
        """Allow for the silence that every answer of the warm-up had, where those measured are ``longer``.

        So many times as long, and silent for so many times as long at most, as an answer that comes whole.
        """
        own = min(_silence(record) for record in warmup if record.status == "ok")
        self.limit_seconds = max(self.limit_seconds, SILENCE_MARGIN * longer * own)

    def begin(self, seconds: float | None) -> None:
        """Heed what happens from then on; None: nothing."""
        self._since, self._silent_since = seconds, None

    def look(self, now: float, newest_token: float) -> None:
        """Note a silence, at a time at which requests are in flight.

        It may be none, as processes of the client tell of tokens late: what is noted is looked at again.
        """
        if self._since is None or self._silent_since is not None:
            return
        newest_token = max(newest_token, self._since)
        if now - newest_token > self.limit_seconds / 2:
            self._silent_since = newest_token

    def stood_still(self, now: float, known: Callable[[], Sequence[RequestRecord]]) -> bool:
        """Return whether the server stood still before an answer that ended ``now``, and time begins anew.

        ``known`` gives all requests so far; it is called where a silence was noted.
        """
        if self._silent_since is None or self.restarts == MOST_RESTARTS:
            return False
        found = standstills(known(), self._silent_since, now, self.limit_seconds)
        self._silent_since = None
        if not found:
            return False
        self.begin(None)
        self.restarts += 1
        self.seconds += sum(found)
        return True

"""What is seen of a server from beside its streams while it is measured: its hardware, its own counters."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from pivotbench.client.acceptance import acceptance
from pivotbench.client.idle import IdleWait, await_idle
from pivotbench.client.record import RequestRecord
from pivotbench.client.warnings import RunWarning, warn
from pivotbench.engines.counters import DraftCounters
from pivotbench.telemetry import RunReadings, Sampler, summarize

# Answers and counters are of the same tokens, so they differ by rounding and definition alone.
TOLERANCE = 0.02
# A server counts a request when it is done with it: a cut one once it has noticed, up to a second later.
SETTLED_SECONDS = 0.1
PATIENCE_SECONDS = 1.5


class Witness:
    """Sees each run from its first request to its last.

    ``counters`` asks the server for its own, ``requests_held`` for what it is at work on, see Engine.
    ``runs`` keeps every reading, for telemetry.parquet.
    """

    def __init__(
        self,
        sampler: Sampler,
        counters: Callable[[], DraftCounters | None],
        requests_held: Callable[[float], int | None],
    ) -> None:
        self._sampler, self._counters, self._requests_held = sampler, counters, requests_held
        self._before: DraftCounters | None = None
        self._idle = IdleWait(None, 0)
        self.runs: list[RunReadings] = []

    def begin(self) -> None:
        """Wait until the server is idle and note its counters; then comes a run's first request."""
        self._idle = await_idle(self._requests_held)
        self._before = self._counters()
        self._origin = time.monotonic()

    def testify(self, run: dict[str, Any], records: Sequence[RequestRecord]) -> None:
        """Add to a run that has ended what was seen of it, and what that warns of.

        That is ``warmup.idle_wait_seconds``, ``telemetry`` and ``acceptance.metrics``.

        Telemetry covers the measured time. The counters cover the whole run, warm-up and cut requests
        included; they are compared with all its complete answers, and stand in where these tell of no drafts.
        """
        run["warmup"]["idle_wait_seconds"] = self._idle.seconds
        if self._idle.held:
            run["warnings"].append(
                warn(RunWarning.NOT_IDLE, held=self._idle.held, seconds=self._idle.seconds)
            )
        counted = self._counted_since()
        run["acceptance"]["metrics"] = check = cross_check(records, counted) if counted else None
        if check and check["answers_length"] is None:
            # No answer tells of its drafts, as vLLM's do not: then the server's counters are what is known.
            told = {name: check[name] for name in ("length", "proposed", "accepted", "verify_steps")}
            run["acceptance"] |= told | {"counted": check["verify_steps"] is not None}
        if check and check["differs"]:
            run["warnings"].append(
                warn(
                    RunWarning.ACCEPTANCE_DIFFERS,
                    metrics=f"{check['length']:.3f}",
                    answers=f"{check['answers_length']:.3f}",
                )
            )
        windows = run["windows"]
        begin = windows[0]["begin_seconds"] if windows else 0.0
        end = windows[-1]["end_seconds"] if windows else time.monotonic() - self._origin
        readings = self._sampler.readings(self._origin, self._origin + end)
        tokens = sum(window["output_tokens"] for window in windows)
        run["telemetry"] = {
            "begin_seconds": begin,
            "end_seconds": end,
            **summarize(readings, self._origin + begin, self._origin + end, tokens),
        }
        self.runs.append(
            RunReadings(
                run["workload"], run["concurrency"], run.get("rate_per_second"), self._origin, readings
            )
        )

    def _counted_since(self) -> DraftCounters | None:
        """Return what the server counted in this run, once it has counted all; None where it does not."""
        until = time.monotonic() + PATIENCE_SECONDS
        now, earlier = self._counters(), None
        if now is None or self._before is None:
            return None
        while now.drafting and (now.in_flight or now != earlier) and time.monotonic() < until:
            time.sleep(SETTLED_SECONDS)
            now, earlier = self._counters() or now, now
        return now.since(self._before)


def cross_check(records: Sequence[RequestRecord], counted: DraftCounters) -> dict[str, Any] | None:
    """Return the acceptance by the server's counters beside that of the complete answers of the same time.

    None where neither saw a draft, or the server does not count them. ``answers_share`` is the share of
    the counted tokens that are in complete answers; the others are those of cut requests. Their lengths
    may lie within a factor of two of the others', so the two lengths may differ by TOLERANCE and by the
    share that no answer accounts for. ``differs`` says whether they do by more; null: no answer reports.
    """
    complete = [r for r in records if r.status == "ok"]
    answers = acceptance(complete)["length"]
    length = counted.length
    if not length or (answers is None and not counted.drafting):
        return None
    told = sum(r.output_tokens or 0 for r in complete)
    share = told / counted.output_tokens
    return {
        "source": "metrics",
        "output_tokens": counted.output_tokens,
        "verify_steps": counted.verify_steps,
        "proposed": counted.proposed,
        "accepted": counted.accepted,
        "length": length,
        "answers_length": answers,
        "answers_share": share,
        "differs": None if answers is None else abs(length / answers - 1) > TOLERANCE + abs(1 - share),
    }

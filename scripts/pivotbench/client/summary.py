"""From raw records to a run of throughput.json: pure functions, so that anyone can find the numbers again.

Which requests count for what:
  windows: the tokens of ok and cut requests (warm-up ones still in flight too) that arrived at
  begin < t <= end. A failed or short answer's tokens are nobody's throughput.
  latencies, acceptance, token totals: measured requests with status ok.
  latencies of all_requests: all measured requests; one that is not ok lasts for ever.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from pivotbench.client.acceptance import acceptance, total
from pivotbench.client.backlog import open_loop_figures
from pivotbench.client.judged_texts import judge_texts
from pivotbench.client.lag import is_client_bound
from pivotbench.client.percentiles import percentile, spread, with_lost
from pivotbench.client.plan import Measured
from pivotbench.client.record import RequestRecord
from pivotbench.client.standstill import stood_still
from pivotbench.client.unanswered import unanswered
from pivotbench.client.warnings import RunWarning, warn

# Pieces of one burst (the tokens of one verify step) that reach the client this close together are one
# arrival, whatever the server's habit of packing them; never more than a fifth of a token's mean time.
BURST_SECONDS = 0.001

# A chat template's own beginning is always cached and may be half of a short prompt; nine tenths are not.
CACHED_SHARE_NOTED = 0.9

# Text counted again differs a little from what was generated: end tokens have no text, and a tokenizer may
# merge what the model wrote in pieces. More than this share is tokens that no user sees.
TEXT_COUNT_TOLERANCE = 0.10


def run_entry(
    records: Sequence[RequestRecord],
    measured: Measured,
    windows: int,
    by_text: dict[str, int] | None = None,
) -> dict[str, Any]:
    """Return one entry of throughput.json's ``runs`` from the records of one run (at least one).

    ``by_text`` is what tokenizer.count_by_text said of some of its answers.
    """
    counted = [r for r in records if r.measured]
    ok = [r for r in counted if r.status == "ok"]
    status = Counter(r.status for r in counted)
    ttft = [r.ttft_seconds for r in ok if r.ttft_seconds is not None]
    tpot = [r.tpot_seconds for r in ok if r.tpot_seconds is not None]
    e2e = [r.e2e_seconds for r in ok if r.e2e_seconds is not None]
    lost = len(counted) - len(ok)
    gap = percentile([gap for r in ok if (gap := token_seconds(r)) is not None], 50)
    bound = is_client_bound(measured.lag_p99_seconds, gap)
    server = [r.output_tokens for r in ok if r.output_tokens is not None]
    tokens = {
        "server": sum(server) if len(server) == len(ok) and ok else None,
        "stream": sum(r.stream_tokens for r in ok),
        "text": by_text,
    }
    open_loop = open_loop_figures(records, measured)
    never = unanswered(counted)
    first = records[0]
    still = stood_still(records, measured)
    return {
        "workload": first.workload,
        "kind": first.kind,
        "concurrency": first.concurrency,
        "rate_per_second": first.rate_per_second,
        "open_loop": open_loop,
        "stop": first.stop,
        "ended_naturally": sum(r.finish_reason == "stop" for r in ok) if first.stop == "natural" else None,
        "warmup": {
            "requests": measured.warmup_requests,
            "seconds": measured.warmup_seconds,
            "stable": measured.warmup_stable,
            "restarts": measured.restarts,
            "stood_still_seconds": measured.stood_still_seconds,
        },
        "standstill": still,
        "windows": cut_windows(records, measured, windows),
        "requests": {
            "completed": status["ok"],
            "failed": status["failed"],
            "short": status["short"],
            "timeout": status["timeout"],
        },
        "unanswered": never,
        "output_tokens": tokens,
        "prompt_tokens": {
            "server": total(r.prompt_tokens for r in ok),
            "cached": total(r.cached_tokens for r in ok),
            "hit_rate": hit_rate(ok),
        },
        "ttft_seconds": spread(ttft),
        "itl_seconds": spread([gap for r in ok for gap in token_gaps(r)]),
        "tpot_seconds": spread(tpot),
        "e2e_seconds": spread(e2e),
        "all_requests": {
            "ttft_seconds": with_lost(ttft, lost),
            "tpot_seconds": with_lost(tpot, lost),
            "e2e_seconds": with_lost(e2e, lost),
        },
        "acceptance": acceptance(ok),
        "answers": judge_texts(ok),
        "errors": [
            f"{times} x {error}"
            for error, times in Counter(r.error for r in counted if r.error).most_common(5)
        ],
        "client": {
            "bound": bound,
            "loop_lag_p99_seconds": measured.lag_p99_seconds,
            "token_gap_seconds": gap,
            "cpu_percent": measured.client_cpu_percent,
        },
        "warnings": _warnings(counted, ok, measured, tokens, never, still, open_loop, bound),
    }


def hit_rate(records: Sequence[RequestRecord]) -> float | None:
    """Return cached over all prompt tokens where the server reports both; None where it never does."""
    told = [r for r in records if r.cached_tokens is not None and r.prompt_tokens]
    total = sum(r.prompt_tokens or 0 for r in told)
    return sum(r.cached_tokens or 0 for r in told) / total if told else None


def cut_windows(records: Sequence[RequestRecord], measured: Measured, windows: int) -> list[dict[str, Any]]:
    """Return the measured time cut into equal windows: tokens received in each / its seconds."""
    begin, end = measured.begin_seconds, measured.end_seconds
    if begin is None or end is None or end <= begin:
        return []
    edges = [begin + (end - begin) * i / windows for i in range(windows)] + [end]
    tokens, completed = [0] * windows, [0] * windows
    for r in records:
        if r.status in ("ok", "cut"):
            for at, n in zip(r.chunk_seconds, r.chunk_tokens, strict=True):
                if begin < at <= end:
                    tokens[bisect_left(edges, at) - 1] += n
        if r.status == "ok" and r.measured and begin < r.end_seconds <= end:
            completed[bisect_left(edges, r.end_seconds) - 1] += 1
    return [
        {
            "window": number,
            "begin_seconds": left,
            "end_seconds": right,
            "output_tokens": tokens[number - 1],
            "output_tok_s": tokens[number - 1] / (right - left),
            "requests_completed": completed[number - 1],
        }
        for number, (left, right) in enumerate(pairwise(edges), 1)
    ]


def token_seconds(record: RequestRecord) -> float | None:
    """Return how long a token of an answer takes: its TPOT, and e2e / tokens where it came all at once.

    Its TPOT is then the time between packets of one burst, against which any client is late.
    """
    e2e, chunks = record.e2e_seconds, record.chunk_seconds
    if record.tpot_seconds is None or e2e is None or chunks[-1] - chunks[0] > BURST_SECONDS:
        return record.tpot_seconds
    return e2e / sum(record.chunk_tokens)


def token_gaps(record: RequestRecord) -> list[float]:
    """Return the inter-token latencies of one answer, one for each token after the first arrival.

    An arrival of k tokens after a gap of g seconds gives k latencies of g / k: a user's tokens, not the
    server's packets. Arrivals closer than a burst (BURST_SECONDS) are one.
    """
    burst = min(BURST_SECONDS, (record.tpot_seconds or 0.0) / 5)
    arrivals: list[list[float]] = []
    latest = 0.0
    for at, tokens in zip(record.chunk_seconds, record.chunk_tokens, strict=True):
        if arrivals and at - latest < burst:
            arrivals[-1][1] += tokens
        elif tokens:
            arrivals.append([at, tokens])
        latest = at
    return [
        (at - before) / tokens for (before, _), (at, tokens) in pairwise(arrivals) for _ in range(int(tokens))
    ]


def _warnings(
    counted: Sequence[RequestRecord],
    ok: Sequence[RequestRecord],
    measured: Measured,
    tokens: dict[str, Any],
    never: Sequence[str],
    still: dict[str, Any],
    open_loop: dict[str, Any] | None,
    bound: bool,
) -> list[str]:
    salted = [r for r in ok if r.kind == "text" and not r.turn]
    cached = sum((r.cached_tokens or 0) > CACHED_SHARE_NOTED * (r.prompt_tokens or 0) for r in salted)
    server, stream = tokens["server"], tokens["stream"]
    text = tokens["text"] or {"answers": 0, "tokens": 0, "server": 0}
    # The token that ends an answer has no text.
    ends = text["answers"] if any(r.stop == "natural" for r in ok) else 0
    synthetic = [r for r in ok if r.kind == "synthetic"]
    # A server may put one token of its own, which begins every text, before the ids it was sent.
    wrong = [
        r
        for r in synthetic
        if r.prompt_ids_sent is not None
        and r.prompt_tokens is not None
        and not 0 <= r.prompt_tokens - r.prompt_ids_sent <= 1
    ]
    raised = {
        RunWarning.UNSTABLE_WARMUP: measured.begin_seconds is not None and not measured.warmup_stable,
        RunWarning.BEGAN_ANEW: measured.restarts > 0,
        RunWarning.STOOD_STILL: still["times"] > 0,
        RunWarning.CLIENT_BOUND: bound,
        RunWarning.REQUESTS_LOST: len(ok) < len(counted),
        RunWarning.UNANSWERED: bool(never),
        RunWarning.COUNTS_DIFFER: server is not None and server != stream,
        RunWarning.NO_SERVER_COUNT: bool(ok) and server is None,
        RunWarning.TEXT_DIFFERS: abs(text["tokens"] - text["server"]) - ends
        > TEXT_COUNT_TOLERANCE * text["server"],
        RunWarning.CACHED_PROMPTS: cached > 0,
        RunWarning.APPROXIMATE_LENGTHS: any(r.prompt_ids_sent is None for r in synthetic),
        RunWarning.WRONG_LENGTHS: bool(wrong),
        RunWarning.UNSUSTAINABLE: open_loop is not None and open_loop["unsustainable"],
        RunWarning.IN_FLIGHT_LIMIT: measured.in_flight_limit is not None,
    }
    return [
        warn(
            which,
            lost=len(counted) - len(ok),
            sent=len(counted),
            unanswered="; ".join(never),
            server=server,
            stream=stream,
            cached=cached,
            salted=len(salted),
            text=text,
            wrong=wrong and (wrong[0].prompt_ids_sent, wrong[0].prompt_tokens),
            flying=open_loop and open_loop["in_flight"],
            limit=measured.in_flight_limit,
            measured=measured,
            still=still,
        )
        for which, holds in raised.items()
        if holds
    ]

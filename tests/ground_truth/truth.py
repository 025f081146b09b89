"""The server in a process of its own, our client against it, and both accounts of one load as figures."""

from __future__ import annotations

import asyncio
import json
import math
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import groupby, pairwise
from pathlib import Path
from statistics import fmean, median
from typing import Any

from ground_truth.server import Schedule
from pivotbench.client.dialects import Ask
from pivotbench.client.record import Identity, RequestRecord
from pivotbench.client.request import Exchange, Target
from pivotbench.client.sender import open_sender
from pivotbench.client.summary import token_gaps
from pivotbench.engines.endpoints import Dialect

TESTS = Path(__file__).resolve().parent.parent
STALL_SECONDS = 30.0


class TruthServer:
    """The server under a schedule, from ``with`` to its end; on the given cores where some are given."""

    def __init__(self, schedule: Schedule, cores: set[int] | None = None) -> None:
        self._schedule, self._cores = schedule, cores

    def __enter__(self) -> TruthServer:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ground_truth.server", json.dumps(asdict(self._schedule))],
            cwd=TESTS,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        if self._cores:
            os.sched_setaffinity(self._process.pid, self._cores)
        assert self._process.stdout is not None
        self.url = f"http://127.0.0.1:{int(self._process.stdout.readline())}"
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def record(self) -> list[dict[str, Any]]:
        """Return what the server wrote down."""
        with urllib.request.urlopen(f"{self.url}/record", timeout=STALL_SECONDS) as answer:
            return list(json.load(answer))


@dataclass(frozen=True)
class Figures:
    """What a load was like: latencies in milliseconds, throughput in tokens a second."""

    ttft_mean_ms: float
    ttft_median_ms: float
    itl_mean_ms: float
    itl_median_ms: float
    tpot_mean_ms: float
    tpot_median_ms: float
    throughput_tok_s: float

    @classmethod
    def of(
        cls, ttft: Sequence[float], itl: Sequence[float], tpot: Sequence[float], throughput_tok_s: float
    ) -> Figures:
        """Return the figures of latencies in seconds; there are no ITLs where all tokens came at once."""
        values = [
            1000 * figure(latencies) if latencies else math.nan
            for latencies in (ttft, itl, tpot)
            for figure in (fmean, median)
        ]
        return cls(*values, throughput_tok_s)

    def errors(self, truth: Figures) -> dict[str, float]:
        """Return each figure's distance from the truth, where it is more than 1 % and more than 1 ms."""
        found = {}
        for name, true in asdict(truth).items():
            error = asdict(self)[name] - true
            allowed = 0.01 * true if name == "throughput_tok_s" else max(0.01 * true, 1.0)
            if not abs(error) <= allowed:
                found[name] = error
        return found


def true_figures(record: Sequence[dict[str, Any]]) -> Figures:
    """Return the figures by the server's own record.

    TTFT = first send - arrival of the request; a send of k tokens g seconds after the one before gives k
    ITLs of g / k; TPOT = (last - first send) / (tokens - 1); throughput is all tokens over the time from
    the first request's arrival to the last send.
    """
    itl: list[float] = []
    for answer in record:
        sends = [
            (at, sum(tokens for _, tokens in chunks))
            for at, chunks in groupby(
                zip(answer["sent"], answer["tokens"], strict=True), key=lambda chunk: chunk[0]
            )
        ]
        itl += [(at - before) / n for (before, _), (at, n) in pairwise(sends) for _ in range(n)]
    begin, end = min(a["arrived"] for a in record), max(a["sent"][-1] for a in record)
    return Figures.of(
        [a["sent"][0] - a["arrived"] for a in record],
        itl,
        [(a["sent"][-1] - a["sent"][0]) / (sum(a["tokens"]) - 1) for a in record],
        sum(sum(a["tokens"]) for a in record) / (end - begin),
    )


def reported_figures(records: Sequence[RequestRecord]) -> Figures:
    """Return the figures by the client's records, as the throughput stage makes them."""
    return Figures.of(
        [r.ttft_seconds for r in records if r.ttft_seconds is not None],
        [gap for r in records for gap in token_gaps(r)],
        [r.tpot_seconds for r in records if r.tpot_seconds is not None],
        sum(r.output_tokens or 0 for r in records)
        / (max(r.end_seconds for r in records) - min(r.sent_seconds for r in records)),
    )


@dataclass(frozen=True)
class Load:
    """What our client did: its records, the processor seconds and the wall seconds it took."""

    records: list[RequestRecord]
    cpu_seconds: float
    wall_seconds: float


def load(
    url: str,
    dialect: Dialect,
    *,
    streams: int,
    requests: int,
    tokens: int,
    prompts: Sequence[tuple[int, ...]] = ((1, 2, 3),),
) -> Load:
    """Send so many requests over so many streams with the client as it is; return what it says.

    ``prompts`` are token ids and taken in turn.
    """
    target = Target(url, dialect, "truth", STALL_SECONDS)
    return asyncio.run(_load(target, streams, requests, tokens, prompts))


async def _load(
    target: Target, streams: int, requests: int, tokens: int, prompts: Sequence[tuple[int, ...]]
) -> Load:
    records: list[RequestRecord] = []
    numbers = iter(range(requests))
    async with open_sender(target, streams) as sender:
        began, cpu = time.monotonic(), sender.cpu_seconds()

        async def work() -> None:
            for number in numbers:
                ids = prompts[number % len(prompts)]
                ask = Ask(({"role": "user", "content": "hi"},), tokens, ignore_eos=True, prompt_ids=ids)
                identity = Identity("truth", "text", streams, number, str(number))
                exchange = Exchange(identity, ask, target.dialect, began)
                await sender.run(exchange)
                records.append(exchange.record(measured=True))

        await asyncio.gather(*(work() for _ in range(streams)))
        return Load(records, sender.cpu_seconds() - cpu, time.monotonic() - began)

"""Small loads for the tests of the client, and servers to send them to."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pivotbench.client import LoadOutcome, LoadPlan, measure
from unit.streaming_server import Handler, Stream, StreamingServer

# Above the least length of a warm-up answer, so that the two can be told apart.
TOKENS = 12


def plan_of(workload: dict[str, Any], *, seconds: float = 0.3, stall: float = 5.0) -> LoadPlan:
    """Return a plan of one workload, ``w``."""
    workloads = {"w": {"output_tokens": TOKENS, **workload}}
    data = {"seconds": seconds, "windows": 2, "min_requests": 4, "workloads": workloads}
    return dataclasses.replace(LoadPlan.from_json(data, seed="study/1"), stall_seconds=stall)


def text(folder: Path, *lines: dict[str, Any]) -> dict[str, Any]:
    """Return a text workload of prompt lines, without a pace."""
    prompts = folder / "prompts.jsonl"
    prompts.write_text("\n".join(map(json.dumps, lines)))
    return {"kind": "text", "prompts": str(prompts)}


def plan(folder: Path, *, concurrency: int = 1, **times: float) -> LoadPlan:
    """Return a plan of three questions at one concurrency."""
    lines = [{"id": f"p{i}", "prompt": f"question {i}"} for i in range(3)]
    return plan_of({**text(folder, *lines), "concurrency": [concurrency]}, **times)


def load(
    server: StreamingServer, load_plan: LoadPlan, alive: Callable[[], bool] = lambda: True
) -> tuple[LoadOutcome, list[str]]:
    """Measure the server; return what came of it and the lines of progress."""
    lines: list[str] = []
    return measure(server.url, ["openai-chat"], "m", load_plan, alive=alive, progress=lines.append), lines


def paced(gap_seconds: float) -> Handler:
    """Answer in chat form, with a token every so many seconds."""

    async def answer(body: dict[str, Any], stream: Stream) -> None:
        for n in range(1, body["max_tokens"] + 1):
            await asyncio.sleep(gap_seconds)
            await stream.content(f"w{n} ", timings={"predicted_n": n})
        await stream.finish(body["max_tokens"])

    return answer

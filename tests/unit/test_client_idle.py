"""Each load begins on an idle server, where the server tells; what it still holds is waited for or named."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import scripted
from pivotbench.client import LoadOutcome, LoadPlan, idle, measure, open_loop
from pivotbench.client.idle import IdleWait, await_idle
from pivotbench.client.record import RequestRecord
from pivotbench.client.witness import Witness
from pivotbench.engines.sglang import SGLANG
from pivotbench.telemetry import Sampler
from unit.loads import text

# Streams of the first load last for 0.8 s and begin all the time; the second is one stream.
MANY = {"output_tokens": 200, "rate": [20.0]}
ONE = {"output_tokens": 8, "concurrency": [1]}
# Abandoned requests are worked on for a second. Whoever is answered beside somebody else is answered with
# exclamation marks: the server's own record.
SCRIPT = ("--script", "abandoned=1", "garbage=bang", "garbage-at=2")


@pytest.fixture(autouse=True)
def _ready_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_loop, "AHEAD_SECONDS", 0.05)


def tells(url: str) -> Callable[[float], int | None]:
    return lambda timeout_seconds: SGLANG.requests_held(url, timeout_seconds)


def is_silent(_: str) -> Callable[[float], int | None]:
    return lambda _: None


def measured(
    folder: Path, url: str, held: Callable[[float], int | None], *loads: dict[str, Any]
) -> LoadOutcome:
    """Return what came of these loads, one after the other."""
    prompts = text(folder, {"id": "p", "prompt": "question"})
    workloads = {f"w{number}": prompts | load for number, load in enumerate(loads)}
    data = {"seconds": 0.3, "windows": 2, "min_requests": 4, "workloads": workloads}
    plan = LoadPlan.from_json(data, seed="study/1")
    with Sampler([], list) as sampler:
        witness = Witness(sampler, lambda: None, held)
        return measure(
            url,
            SGLANG.dialects,
            "ours",
            plan,
            alive=lambda: True,
            progress=lambda _: None,
            witness=witness,
        )


def had_company(records: list[RequestRecord], workload: str) -> bool:
    """Return whether any request of a load, of its warm-up too, was answered beside another."""
    return any("!" in record.text for record in records if record.workload == workload)


@pytest.mark.parametrize("engine", [tells, is_silent])
def test_a_load_begins_when_the_server_has_let_go_of_the_one_before_if_it_tells(
    tmp_path: Path, engine: Callable[[str], Callable[[float], int | None]]
) -> None:
    with scripted.served("--script-token-seconds", "0.004", *SCRIPT) as (_, port):
        url = f"http://127.0.0.1:{port}"
        outcome = measured(tmp_path, url, engine(url), MANY, ONE)
    assert had_company(outcome.records, "w0"), "streams of the first load were to overlap"
    waited = [run["warmup"]["idle_wait_seconds"] for run in outcome.runs]
    if engine is tells:
        assert not had_company(outcome.records, "w1")
        assert waited[1] > max(waited[0], 0.3)
        assert not any("not_idle" in warning for run in outcome.runs for warning in run["warnings"])
    else:
        assert had_company(outcome.records, "w1"), "nothing is waited for where nothing is told"
        assert waited == [None, None]


def test_a_server_that_somebody_else_keeps_busy_is_measured_and_the_run_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idle, "IDLE_WAIT_SECONDS", 0.2)
    with scripted.served("--script-token-seconds", "0.002") as (_, port):
        somebody = http.client.HTTPConnection("127.0.0.1", port)
        body = {"text": "a story", "sampling_params": {"max_new_tokens": 10**5}, "stream": True}
        somebody.request("POST", "/generate", json.dumps(body))
        somebody.getresponse().read(1)
        url = f"http://127.0.0.1:{port}"
        [run] = measured(tmp_path, url, tells(url), ONE).runs
        somebody.close()
    assert run["windows"] and run["requests"]["completed"] >= 4
    assert run["warmup"]["idle_wait_seconds"] >= 0.2
    [said] = [warning for warning in run["warnings"] if warning.startswith("not_idle: ")]
    assert said.endswith("it still held requests of others or of the load before (1)")


def test_a_server_that_does_not_tell_is_asked_once() -> None:
    told = iter([None])
    assert await_idle(lambda _: next(told)) == IdleWait(None, 0)


def test_a_server_that_ceases_to_tell_is_not_waited_for() -> None:
    told = iter([3, 2, None])
    began = time.monotonic()
    assert await_idle(lambda _: next(told)).held == 2
    assert time.monotonic() - began < idle.IDLE_WAIT_SECONDS / 2

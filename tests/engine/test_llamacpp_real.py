"""The real llama.cpp server, as `make engine` provides it: flags, settings, failures, end."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from pivotbench.client import LoadPlan, RequestRecord, generate, measure
from pivotbench.client.witness import Witness
from pivotbench.engines import engine_python
from pivotbench.engines.base import FlagValue
from pivotbench.engines.catalogue import FlagSpec
from pivotbench.engines.llamacpp import LLAMACPP, SERVE_PROGRAM
from pivotbench.pace import IDLE_WAIT_SECONDS
from pivotbench.provision import model_path
from pivotbench.study import load_study
from pivotbench.telemetry import Sampler

ROOT = Path(__file__).resolve().parents[2]
NAME = "nonce-1"
READY_SECONDS = 30.0
SMALL: dict[str, FlagValue] = {"threads": 1, "parallel": 2, "ctx-size": 1024}

pytestmark = [pytest.mark.engine, pytest.mark.alone, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def python() -> Path:
    found = engine_python("llamacpp", None, ROOT)
    assert found.exists(), "the engine is missing: run `make engine`"
    return found


@pytest.fixture(scope="module")
def model() -> str:
    found = model_path(load_study(ROOT / "config" / "config.yaml").model)
    assert Path(found).is_file(), "the model is missing: run `make engine`"
    return found


@dataclass
class Server:
    """A started server: its process, its address, and the file its log goes to."""

    process: subprocess.Popen[bytes]
    url: str
    log_file: Path

    @property
    def log(self) -> list[str]:
        return self.log_file.read_text(errors="replace").splitlines()

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while LLAMACPP.probe(self.url, NAME, timeout_seconds=5).state != "ready":
            assert self.process.poll() is None, self.log[-5:]
            assert time.monotonic() < deadline, self.log[-5:]
            time.sleep(0.02)


Start = Callable[..., Server]


@pytest.fixture
def start(python: Path, model: str, tmp_path: Path) -> Iterator[Start]:
    started: list[Server] = []

    def start(flags: dict[str, FlagValue], port: int | None = None) -> Server:
        port = port or free_port()
        command = LLAMACPP.command(str(python), model, flags, port=port, served_name=NAME)
        log_file = tmp_path / f"{len(started)}.log"
        with log_file.open("wb") as log:
            process = subprocess.Popen(command.argv, stderr=log, env={**os.environ, **command.env})
        started.append(Server(process, f"http://127.0.0.1:{port}", log_file))
        return started[-1]

    yield start
    for server in started:
        server.process.kill()
        server.process.wait()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port


def test_the_running_server_tells_its_effective_settings(start: Start) -> None:
    server = start({**SMALL, "cache-type-k": "q8_0", "spec-type": ["ngram-map-k", "ngram-mod"]})
    server.wait_until_ready()
    info = LLAMACPP.server_info(server.url, server.log)
    expected = {
        "threads": 1,
        "parallel": 2,
        "ctx-size": 1024,
        "slot-ctx-size": 512,
        "cache-type-k": "q8_0",
        "cache-type-v": "f16",
        "flash-attn": "on",  # what "auto" comes to
        "spec-type": "ngram-map-k, ngram-mod",
    }
    assert {name: info[name] for name in expected} == expected


def test_the_log_times_every_phase_of_a_launch(start: Start) -> None:
    server = start(SMALL)
    server.wait_until_ready()
    phases = LLAMACPP.launch_phases(server.log)
    assert [phase.name for phase in phases] == ["start", "weights", "context", "warm-up", "listen"]
    assert all(phase.seconds >= 0 for phase in phases)


def test_it_listens_on_loopback_alone_and_under_its_own_name(start: Start) -> None:
    server = start(SMALL)
    server.wait_until_ready()
    port = int(server.url.rpartition(":")[2])
    listeners = Path("/proc/net/tcp").read_text().splitlines()[1:]
    bound = {line.split()[1] for line in listeners if line.split()[3] == "0A"}
    assert {address for address in bound if int(address.partition(":")[2], 16) == port} == {
        f"0100007F:{port:04X}"
    }
    assert LLAMACPP.probe(server.url, "another", timeout_seconds=5).state == "stranger"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly_and_fast(start: Start, number: signal.Signals) -> None:
    server = start(SMALL)
    server.wait_until_ready()
    server.process.send_signal(number)
    assert server.process.wait(timeout=3) == 0


def test_a_signal_while_it_loads_ends_it_at_once(start: Start) -> None:
    server = start(SMALL)
    while not server.log:
        time.sleep(0.005)
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(timeout=2) in (0, -signal.SIGTERM)


def test_quantized_values_without_flash_attention_end_it_with_the_reason(start: Start) -> None:
    began = time.monotonic()
    server = start({"flash-attn": "off", "cache-type-k": "q8_0", "cache-type-v": "q8_0"})
    assert server.process.wait(timeout=10) == 1
    took = time.monotonic() - began
    assert any("quantized V cache requires flash_attn to be enabled" in line for line in server.log)
    assert server.log[-1].startswith("llamacpp_serve: the server did not start")
    assert took < 5  # about 0.5 s; a test machine may be busy


def test_a_port_in_use_ends_it_with_the_reason(start: Start) -> None:
    first = start(SMALL)
    first.wait_until_ready()
    second = start(SMALL, port=int(first.url.rpartition(":")[2]))
    assert second.process.wait(timeout=10) == 1
    assert any("couldn't bind" in line for line in second.log)


def test_answers_and_metrics_of_a_speculating_server_agree_on_acceptance(
    start: Start, tmp_path: Path
) -> None:
    drafting: dict[str, FlagValue] = {"spec-type": ["ngram-simple"], "spec-ngram-simple-size-n": 3}
    server = start({**SMALL, **drafting})
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text(
        '{"id": "fox", "prompt": "Repeat: the red fox ran over the hill. the red fox ran over the hill."}\n'
        '{"id": "count", "prompt": "Repeat: one two three four five. one two three four five."}\n'
    )
    load = {"kind": "text", "prompts": str(prompts), "output_tokens": 32, "concurrency": [1, 2]}
    plan = LoadPlan.from_json(
        {"seconds": 0.2, "windows": 1, "min_requests": 2, "workloads": {"repetitive": load}}, seed="s"
    )
    server.wait_until_ready()
    with Sampler([], lambda: [server.process.pid]) as sampler:
        witness = Witness(
            sampler,
            lambda: LLAMACPP.draft_counters(server.url),
            lambda timeout_seconds: LLAMACPP.requests_held(server.url, timeout_seconds),
        )
        outcome = measure(
            server.url,
            LLAMACPP.dialects,
            NAME,
            plan,
            alive=lambda: server.process.poll() is None,
            progress=lambda _: None,
            witness=witness,
        )
    assert outcome.reason is None
    assert all(0 < run["warmup"]["idle_wait_seconds"] < IDLE_WAIT_SECONDS for run in outcome.runs)
    alone, together = (run["acceptance"]["metrics"] for run in outcome.runs)
    assert alone["answers_share"] == 1.0, "at concurrency 1 no request is cut, so both count the same tokens"
    assert alone["length"] == alone["answers_length"] > 1.0
    assert together["differs"] is False
    assert not any(
        warning.startswith("acceptance_differs") for run in outcome.runs for warning in run["warnings"]
    )
    shares = [
        r.values["server_cpu_percent"] for r in witness.runs[0].readings if "server_cpu_percent" in r.values
    ]
    assert max(shares) > 1


def measured(server: Server, workload: dict[str, Any]) -> tuple[dict[str, Any], list[RequestRecord]]:
    """Return the only run and its measured requests."""
    workloads = {"w": {"output_tokens": 8, "concurrency": [1], **workload}}
    data = {"seconds": 0.2, "windows": 1, "min_requests": 3, "workloads": workloads}
    outcome = measure(
        server.url,
        LLAMACPP.dialects,
        NAME,
        LoadPlan.from_json(data, seed="s"),
        alive=lambda: server.process.poll() is None,
        progress=lambda _: None,
    )
    assert outcome.reason is None
    [run] = outcome.runs
    return run, [r for r in outcome.records if r.measured and r.status == "ok"]


def test_synthetic_prompts_are_exact_to_the_token_and_cached_as_far_as_they_share(start: Start) -> None:
    server = start({**SMALL, "parallel": 1})
    server.wait_until_ready()
    workload = {"kind": "synthetic", "prompt_tokens": [60], "shared_prefix": 0.5}
    run, records = measured(server, workload)
    assert {r.prompt_tokens for r in records} == {60}
    assert {r.cached_tokens for r in records} == {30}
    assert run["prompt_tokens"]["hit_rate"] == 0.5
    by_text = run["output_tokens"]["text"]
    assert by_text["tokens"] == pytest.approx(by_text["server"], rel=0.1), "the server counts texts, too"


def test_a_later_turn_finds_its_history_in_the_prefix_cache(start: Start, tmp_path: Path) -> None:
    server = start({**SMALL, "parallel": 1})
    server.wait_until_ready()
    prompts = tmp_path / "talk.jsonl"
    prompts.write_text('{"id": "a", "turns": ["Tell me of a fox.", "And then?", "How does it end?"]}')
    _, records = measured(server, {"kind": "text", "prompts": str(prompts)})
    assert [r.turn for r in records[:3]] == [0, 1, 2]
    for before, after in itertools.pairwise(records[:3]):
        assert (after.cached_tokens or 0) >= (before.prompt_tokens or 0)


def example(flag: FlagSpec) -> list[str]:
    """Return the flag with a value it takes."""
    if not flag.takes_value:
        return [f"--{flag.name}"]
    return [f"--{flag.name}", flag.choices[-1] if flag.choices else "1"]


def test_every_flag_of_the_list_sets_a_field_of_this_engine(python: Path) -> None:
    flags = LLAMACPP.read_flags(python, {}).flags
    assert len(flags) > 40
    script = (
        "import importlib.util, sys, xllamacpp\n"
        f"spec = importlib.util.spec_from_file_location('serve', {str(SERVE_PROGRAM)!r})\n"
        "serve = importlib.util.module_from_spec(spec); spec.loader.exec_module(serve)\n"
        "parser = serve.build_parser()\n"
        "for line in sys.stdin.read().splitlines():\n"
        "    settings = vars(parser.parse_args(line.split()))\n"
        "    assert len(settings) == 1, line\n"
        "    serve.common_params(xllamacpp, settings)\n"
        "    field = next(iter(settings))\n"
        "    kind, members = serve.ENUMERATIONS.get(field, ('', {}))\n"
        "    for member in members.values():\n"
        "        getattr(xllamacpp, kind)[member]\n"
    )
    lines = "\n".join(" ".join(example(flag)) for flag in flags)
    ended = subprocess.run(
        [str(python), "-c", script], input=lines, capture_output=True, text=True, timeout=30
    )
    assert ended.returncode == 0, ended.stderr


def test_the_serving_program_needs_nothing_but_its_own_environment(python: Path) -> None:
    ended = subprocess.run(
        [str(python), "-I", str(SERVE_PROGRAM), "--print-flags"], capture_output=True, text=True, timeout=30
    )
    assert ended.returncode == 0, ended.stderr


def test_a_followed_text_is_as_likely_after_a_relaunch_and_nearly_so_to_another_backend(start: Start) -> None:
    def followed(flags: dict[str, FlagValue]) -> tuple[float, ...]:
        server = start({**SMALL, **flags})
        server.wait_until_ready()
        forced = LLAMACPP.teacher_logprobs(server.url, "one, two, three, four,", " five, six, seven")
        assert forced.why is None and forced.logprobs is not None
        server.process.kill()
        return tuple(value for value in forced.logprobs if value is not None)

    first, again = followed({"flash-attn": "on"}), followed({"flash-attn": "on"})
    assert first == again and len(first) == 5
    other = followed({"flash-attn": "off"})
    assert other != first
    assert fmean(abs(a - b) for a, b in zip(first, other, strict=True)) < 0.25


def test_asking_for_logprobs_leaves_drafting_on_but_accepted_drafts_have_none(start: Start) -> None:
    server = start({**SMALL, "spec-type": ["ngram-simple"], "spec-ngram-simple-size-n": 3})
    server.wait_until_ready()
    copy = "Repeat: the red fox ran over the green hill. the red fox ran over the green hill."
    said = generate(
        server.url, LLAMACPP.dialects[0], NAME, [copy], 32, alive=lambda: server.process.poll() is None
    )
    assert said.failure is None and said.logprobs_refused is None
    [[answer]] = said.answers
    assert (answer.token_ids, answer.logprobs) == (None, None), "a part of them would be misread as a whole"
    counters = LLAMACPP.draft_counters(server.url)
    assert counters is not None and counters.accepted

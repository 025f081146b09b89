"""The scripted server does what its script says: each behaviour is shown on a real process."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

import scripted
from pivotbench.client import LoadPlan, generate, measure, spoken
from pivotbench.engines.sglang import SGLANG

Flags = dict[str, Any]


@dataclass
class Running:
    """A started server."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    def ask(self, path: str, body: Flags | None = None, timeout: float = 5) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        method = "GET" if body is None else "POST"
        connection.request(method, path, None if body is None else json.dumps(body))
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, json.loads(text) if text.startswith((b"{", b"[")) else text.decode()

    def generate(self, prompt: str, tokens: int = 12, timeout: float = 5, **sampling: Any) -> Flags:
        body = {"text": prompt, "sampling_params": {"max_new_tokens": tokens, **sampling}}
        status, answer = self.ask("/generate", body, timeout)
        assert status == 200
        return answer

    def events(self, path: str, body: Flags, timeout: float = 5) -> Iterator[Flags]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        connection.request("POST", path, json.dumps({**body, "stream": True}))
        for line in connection.getresponse():
            if line.startswith(b"data: {"):
                yield json.loads(line.removeprefix(b"data: "))
        connection.close()

    def until(self, what: Callable[[], bool], seconds: float = 5) -> None:
        deadline = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.01)

    def listening(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def wait(self, seconds: float = 5) -> int:
        return self.process.wait(seconds)


Start = Callable[..., Running]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    monkeypatch.setenv("PIVOTBENCH_TEST_PYTHON", sys.executable)
    running: list[Running] = []

    def start_server(*flags: str, script: tuple[str, ...] = (), ready: bool = True, port: int = 0) -> Running:
        port = port or free_port()
        log = tmp_path / f"{len(running)}.log"
        command = [
            str(scripted.PYTHON),
            "-m",
            "sglang.launch_server",
            "--model-path",
            "m",
            "--port",
            str(port),
        ]
        command += ["--served-model-name", "ours", "--script-token-seconds", "0.001", *flags]
        command += ["--script", *script] if script else []
        with log.open("wb") as stream:
            server = Running(subprocess.Popen(command, stdout=stream, stderr=stream), port, log)
        running.append(server)
        if ready:
            server.until(lambda: "fired up" in log.read_text())
        return server

    yield start_server
    for server in running:
        server.process.kill()
        server.process.wait()


def test_it_says_who_it_is(start: Start) -> None:
    server = start()
    assert server.ask("/v1/models")[1]["data"][0]["id"] == "ours"
    assert server.ask("/health_generate")[0] == 200
    assert server.ask("/server_info")[1]["version"] == "0.5.16"
    assert server.ask("/nothing")[0] == 404


def test_it_answers_a_sum_and_stops_and_runs_on_where_told_to(start: Start) -> None:
    server = start()
    answer = server.generate("What is 2+2?", 40)
    assert answer["text"] == "The answer is 4."
    assert answer["meta_info"]["finish_reason"]["type"] == "stop"
    longer = server.generate("What is 2+2?", 40, ignore_eos=True)
    assert longer["meta_info"]["finish_reason"] == {"type": "length", "length": 40}
    assert len(longer["output_ids"]) == longer["meta_info"]["completion_tokens"] == 40


def test_the_same_prompt_has_the_same_answer_in_another_process(start: Start) -> None:
    one, other = start(), start()
    assert one.generate("a bridge", 60)["text"] == other.generate("a bridge", 60)["text"]
    assert one.generate("a bridge", 60)["text"] != one.generate("a ladder", 60)["text"]


def test_a_native_stream_is_cumulative_and_ends_with_the_reason(start: Start) -> None:
    body = {"text": "a bridge", "sampling_params": {"max_new_tokens": 5}}
    chunks = list(start().events("/generate", body))
    assert [chunk["meta_info"]["completion_tokens"] for chunk in chunks] == [1, 2, 3, 4, 5]
    assert all(b["text"].startswith(a["text"]) for a, b in itertools.pairwise(chunks))
    assert [bool(chunk["meta_info"]["finish_reason"]) for chunk in chunks] == [False] * 4 + [True]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/completions", {"prompt": "a bridge"}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a bridge"}]}),
    ],
)
def test_openai_streams_give_pieces_and_usage_last(start: Start, path: str, body: Flags) -> None:
    server = start()
    body = {**body, "max_tokens": 6}
    chunks = list(server.events(path, {**body, "stream_options": {"include_usage": True}}))
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["completion_tokens"] == 6
    pieces = [chunk["choices"][0] for chunk in chunks[:-1]]
    text = "".join(piece["text"] if "text" in piece else piece["delta"]["content"] for piece in pieces)
    whole = server.ask(path, body)[1]["choices"][0]
    assert text == (whole["text"] if "text" in whole else whole["message"]["content"])
    assert [piece["finish_reason"] for piece in pieces] == [None] * 5 + ["length"]


def test_reasoning_comes_before_the_content(start: Start) -> None:
    server = start(script=("reasoning=3",))
    body = {"messages": [{"role": "user", "content": "a bridge"}], "max_tokens": 5}
    deltas = [chunk["choices"][0]["delta"] for chunk in server.events("/v1/chat/completions", body)]
    assert [delta["reasoning_content"] is not None for delta in deltas] == [True] * 3 + [False] * 2
    assert [delta["content"] is not None for delta in deltas] == [False] * 3 + [True] * 2


def test_the_pace_is_the_scripted_one(start: Start) -> None:
    server = start("--script-token-seconds", "0.01", "--script-prefill-seconds", "0.1")
    began = time.monotonic()
    server.generate("a bridge", 21)
    assert time.monotonic() - began >= 0.3


def test_speculation_accepts_by_the_kind_of_prompt_and_counts_it(start: Start) -> None:
    rules = ("--script-acceptance", "repeat=3.0", "1.25", "--speculative-num-draft-tokens", "4")
    server = start("--speculative-algorithm", "NGRAM", *rules)
    fast = server.generate("repeat after me", 60)["meta_info"]
    slow = server.generate("a story", 60)["meta_info"]
    assert fast["completion_tokens"] / fast["spec_verify_ct"] == pytest.approx(3.0, rel=0.02)
    assert slow["completion_tokens"] / slow["spec_verify_ct"] == pytest.approx(1.25, rel=0.02)
    assert fast["spec_accepted_drafts"] == 60 - fast["spec_verify_ct"]
    assert fast["e2e_latency"] < slow["e2e_latency"]


def test_without_speculation_nothing_is_claimed_of_it(start: Start) -> None:
    assert not [key for key in start().generate("a story")["meta_info"] if key.startswith("spec")]


def test_a_seen_prompt_is_cached_until_the_cache_is_flushed(start: Start) -> None:
    server = start()
    prompt = "one two three four"
    cached = [server.generate(prompt)["meta_info"]["cached_tokens"] for _ in range(2)]
    assert server.ask("/flush_cache", {})[0] == 200
    cached.append(server.generate(prompt)["meta_info"]["cached_tokens"])
    assert cached == [0, 3, 0]


def test_metrics_are_there_only_when_enabled(start: Start) -> None:
    assert "sglang:generation_tokens_total" in start("--enable-metrics").ask("/metrics")[1]
    assert start().ask("/metrics")[0] == 404


def test_a_crash_at_launch_prints_the_given_log_and_dies_by_the_given_signal(start: Start) -> None:
    script = ("crash", "crash-log=moe-trtllm.log", "crash-exit=-9")
    server = start(script=script, ready=False)
    assert server.wait() == -signal.SIGKILL
    assert "AssertionError: Failed to get checksums.txt" in server.log.read_text()
    assert not server.listening()


def test_a_crash_may_come_after_the_server_was_ready(start: Start) -> None:
    server = start(script=("crash-after=0.3", "crash-exit=7"))
    assert server.generate("a bridge")["text"]
    assert server.wait() == 7


def test_a_hanging_launch_lives_and_never_listens(start: Start) -> None:
    server = start(script=("hang-launch",), ready=False)
    server.until(lambda: "CUDA graph end" in server.log.read_text())
    assert server.process.poll() is None
    assert not server.listening()


def test_a_slow_launch_takes_its_time_and_a_warming_server_is_healthy_but_not_ready(start: Start) -> None:
    began = time.monotonic()
    server = start(script=("start=0.3", "warming=0.5"), ready=False)
    server.until(server.listening)
    assert time.monotonic() - began >= 0.3
    assert server.ask("/health")[0] == 200
    assert server.ask("/generate", {"text": "a"})[0] == 503
    server.until(lambda: server.ask("/generate", {"text": "a"})[0] == 200)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("bang", "!" * 8),
        ("replacement", "\ufffd" * 8),
        ("newlines", "\n" * 8),
        ("empty", ""),
        ("loop", " la" * 8),
    ],
)
def test_garbage_comes_with_status_200(start: Start, kind: str, text: str) -> None:
    answer = start(script=(f"garbage={kind}",)).generate("What is 2+2?", 8)
    assert answer["text"] == text
    assert answer["meta_info"]["completion_tokens"] == 8


def test_garbage_may_come_only_at_concurrency(start: Start) -> None:
    server = start("--script-token-seconds", "0.02", script=("garbage=bang", "garbage-at=2"))
    assert "!!!!" not in server.generate("a bridge", 8)["text"]
    body = {"text": "a bridge", "sampling_params": {"max_new_tokens": 40}}
    first = server.events("/generate", body)
    next(first)
    assert server.generate("a bridge", 8)["text"] == "!" * 8
    assert "!!!!" not in list(first)[-1]["text"]


def test_it_dies_in_mid_stream_after_n_requests_and_probes_do_not_count(start: Start) -> None:
    server = start(script=("die-after=2", "crash-exit=3"))
    for _ in range(3):
        server.generate("probe", 1)
    assert [len(server.generate("a bridge", 8)["output_ids"]) for _ in range(2)] == [8, 8]
    chunks = list(server.events("/generate", {"text": "a bridge", "sampling_params": {}}))
    assert [chunk["meta_info"]["completion_tokens"] for chunk in chunks] == [1, 2]
    assert server.wait() == 3


def test_it_dies_at_n_requests_in_flight(start: Start) -> None:
    server = start("--script-token-seconds", "0.02", script=("die-at=2",))
    server.generate("a bridge", 4)
    first = server.events("/generate", {"text": "a", "sampling_params": {"max_new_tokens": 100}})
    next(first)
    with pytest.raises((http.client.HTTPException, OSError)):
        server.generate("b", 8)
    assert server.wait() == 1


def test_it_hangs_after_n_requests_and_stays_alive(start: Start) -> None:
    server = start(script=("hang-after=1",))
    server.generate("a bridge")
    with pytest.raises(TimeoutError):
        server.generate("a bridge", timeout=0.3)
    assert server.process.poll() is None
    assert server.ask("/health")[0] == 200


def test_sigterm_ends_it_at_once_unless_it_is_to_ignore_it(start: Start) -> None:
    polite, stubborn = start(), start(script=("ignore-term",))
    polite.process.terminate()
    assert polite.wait(2) == 0
    stubborn.process.terminate()
    stubborn.until(lambda: "ignored" in stubborn.log.read_text())
    assert stubborn.generate("a bridge")["text"]


@pytest.mark.parametrize("clean", [False, True])
def test_orphans_outlive_it_in_sessions_of_their_own_and_keep_memory(
    start: Start, monkeypatch: pytest.MonkeyPatch, clean: bool
) -> None:
    monkeypatch.setenv("PIVOTBENCH_TEST_MARK", "here")
    mark = f"60.{os.getpid()}7"
    script = [
        "orphans=2",
        "orphan-mib=32",
        f"orphan-seconds={mark}",
        *(["orphan-clean-env"] if clean else []),
    ]
    server = start(script=tuple(script))
    server.process.kill()
    server.wait()
    orphans = [process for process in psutil.process_iter() if mark in _cmdline(process)]
    try:
        assert len(orphans) == 2
        for orphan in orphans:
            assert os.getsid(orphan.pid) == orphan.pid
            server.until(lambda orphan=orphan: orphan.memory_info().rss >= 32 << 20)
            assert ("PIVOTBENCH_TEST_MARK" in orphan.environ()) is not clean
    finally:
        for orphan in orphans:
            orphan.kill()


def test_the_port_may_be_kept_by_another_process(start: Start) -> None:
    with scripted.PortHolder() as holder:
        server = start(script=(f"keep-port={holder.path}",))
        assert holder.received.wait(2)
        server.process.kill()
        server.wait()
        assert server.listening()
        next_one = start(port=server.port, ready=False)
        assert next_one.wait() == 1
        assert "address already in use" in next_one.log.read_text().lower()
    assert not server.listening()


def test_a_stranger_answers_under_another_name(start: Start) -> None:
    assert start(script=("stranger",)).ask("/v1/models")[1]["data"][0]["id"] != "ours"


def test_an_override_shows_in_server_info_and_in_its_internal_states(start: Start) -> None:
    script = ('override={"attention_backend": "triton"}',)
    info = start("--attention-backend", "fa3", "--dp", "2", script=script).ask("/server_info")[1]
    assert info["attention_backend"] == "triton"
    assert [state["attention_backend"] for state in info["internal_states"]] == ["triton", "triton"]
    assert info["internal_states"][0]["_resolved_overrides"] == [
        ["_scripted", {"attention_backend": "triton"}]
    ]


def test_a_transient_fault_happens_only_the_first_times(start: Start, tmp_path: Path) -> None:
    script = ("crash", f"once={tmp_path / 'count'}", "times=2")
    assert [start(script=script, ready=False).wait() for _ in range(2)] == [1, 1]
    assert start(script=script).generate("What is 2+2?")["text"] == "The answer is 4."


def test_a_script_may_be_json_and_an_unknown_behaviour_is_refused(start: Start) -> None:
    assert start(script=('{"garbage": "bang", "garbage-at": 1}',)).generate("x", 4)["text"] == "!!!!"
    wrong = start(script=("expolde",), ready=False)
    assert wrong.wait() == 1
    assert "expolde" in wrong.log.read_text()


def test_events_tell_launches_and_overlaps(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "events"
    one, two = start("--script-events", str(path)), start("--script-events", str(path))
    for server in (one, two):
        server.process.terminate()
        server.wait()
    start("--script-events", str(path))
    assert scripted.launches(path) == 3
    assert scripted.overlaps(path) == [(one.process.pid, two.process.pid)]
    whats = [event.what for event in scripted.read_events(path) if event.pid == one.process.pid]
    assert whats == ["START", "READY", "STOP"]


def _cmdline(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def test_it_tokenizes_a_text_and_counts_the_ids_that_come_back(start: Start) -> None:
    server = start()
    ids = server.ask("/v1/tokenize", {"prompt": "a bridge"})[1]["tokens"]
    native = {"input_ids": ids, "sampling_params": {"max_new_tokens": 8}}
    completion = {"prompt": ids, "max_tokens": 8}
    said = server.ask("/generate", native)[1]
    assert said["text"] == server.generate("a bridge", 8)["text"]
    assert said["meta_info"]["prompt_tokens"] == len(ids) == 2
    said = server.ask("/v1/completions", completion)[1]
    assert said["usage"]["prompt_tokens"] == len(ids)


def test_synthetic_prompts_are_exact_in_sglangs_own_dialect(start: Start) -> None:
    server = start()
    workload = {"kind": "synthetic", "prompt_tokens": [24], "output_tokens": 8, "concurrency": [2]}
    data = {"seconds": 0.2, "windows": 1, "min_requests": 4, "workloads": {"w": workload}}
    outcome = measure(
        f"http://127.0.0.1:{server.port}",
        SGLANG.dialects,
        "ours",
        LoadPlan.from_json(data, seed="s"),
        alive=lambda: True,
        progress=lambda _: None,
    )
    assert outcome.reason is None
    assert {r.prompt_tokens for r in outcome.records if r.status == "ok"} == {24}


def test_a_server_that_fails_to_tell_the_chat_form_is_asked_in_the_next_dialect(start: Start) -> None:
    well, ill = start(), start(script=("no-chat-form",))
    assert spoken(f"http://127.0.0.1:{well.port}", "ours", SGLANG.dialects) == (list(SGLANG.dialects), None)
    left, why = spoken(f"http://127.0.0.1:{ill.port}", "ours", SGLANG.dialects)
    assert left == list(SGLANG.dialects[1:])
    assert why is not None and "HTTP 500" in why and left[0] in why
    url = f"http://127.0.0.1:{ill.port}"
    said = generate(url, left[0], "ours", ["What is 2+2?"], 16, alive=lambda: True)
    assert "4" in said.answers[0][0].text


def test_a_server_that_is_gone_is_left_for_the_requests_to_find_out() -> None:
    assert spoken(f"http://127.0.0.1:{free_port()}", "ours", SGLANG.dialects) == (
        list(SGLANG.dialects),
        None,
    )

"""A server is made to follow a text, and tells how likely it was."""

from __future__ import annotations

import contextlib
import http.server
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import scripted
from pivotbench.engines.base import Engine
from pivotbench.engines.forced import LONGEST_TOKENS, boundary
from pivotbench.engines.llamacpp import LLAMACPP
from pivotbench.engines.sglang import SGLANG

LONG = " and so on" + ", and on" * 10


def free_port() -> int:
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as probe:
        return int(probe.server_address[1])


def sglang(script: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("PIVOTBENCH_TEST_PYTHON", sys.executable)
    port = free_port()
    command = SGLANG.command(
        str(scripted.PYTHON), "m", {"script": script} if script else {}, port=port, served_name="o"
    )
    server = subprocess.Popen(command.argv, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    while SGLANG.probe(url, "o", timeout_seconds=5).state != "ready":
        assert server.poll() is None
        time.sleep(0.02)
    yield url
    server.kill()
    server.wait()


def test_sglang_tells_the_continuations_own_logprobs_and_no_more_than_a_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for url in sglang([], monkeypatch):
        short = SGLANG.teacher_logprobs(url, "One, two,", " three")
        assert short.logprobs is not None and len(short.logprobs) == 1
        long = SGLANG.teacher_logprobs(url, "One, two,", LONG)
        assert long.logprobs is not None and len(long.logprobs) == LONGEST_TOKENS
        assert SGLANG.teacher_logprobs(url, "One, two,", " three") == short


def test_a_server_that_refuses_logprobs_gives_none_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    for url in sglang(["no-logprobs"], monkeypatch):
        forced = SGLANG.teacher_logprobs(url, "One, two,", " three")
        assert forced.logprobs is None and "not supported" in (forced.why or "")


def test_nobody_there_is_a_why_and_no_exception() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    for engine in (SGLANG, LLAMACPP):
        forced = engine.teacher_logprobs(url, "One", " two")
        assert forced.logprobs is None and "refused" in (forced.why or "").lower()


@contextlib.contextmanager
def answering(answer: Callable[[str, Any], Any]) -> Iterator[str]:
    """Serve, for every POST, what ``answer`` makes of its path and JSON body."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            data = json.dumps(answer(self.path, asked)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Keep quiet."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_llamacpp_is_stepped_through_and_an_unlisted_token_is_bounded_by_the_last_listed() -> None:
    def letters(path: str, asked: Any) -> Any:
        """A letter is a token; two are listed, "a" and "b", which is the less likely the later it comes."""
        if path == "/tokenize":
            return {"tokens": [ord(c) for c in asked["content"]]}
        listed = [{"id": ord("a"), "logprob": -0.5}, {"id": ord("b"), "logprob": -len(asked["prompt"])}]
        return {"completion_probabilities": [{"top_logprobs": listed}]}

    with answering(letters) as url:
        forced = LLAMACPP.teacher_logprobs(url, "xy", "abz")
    assert forced.logprobs == (-0.5, -3, -4)
    assert forced.at_most == (2,)


@pytest.mark.parametrize("told", ["low", [1], 10**400, {}], ids=["text", "list", "too large", "object"])
@pytest.mark.parametrize("engine", [SGLANG, LLAMACPP], ids=lambda engine: engine.name)
def test_a_logprob_that_is_no_number_is_a_why_and_no_exception(engine: Engine, told: Any) -> None:
    def odd(path: str, asked: Any) -> Any:
        if path.endswith("/tokenize"):
            return {"tokens": [ord(c) for c in asked.get("content") or asked["prompt"]]}
        return {
            "completion_probabilities": [{"top_logprobs": [{"id": ord("a"), "logprob": told}]}],
            "meta_info": {"input_token_logprobs": [[told, token] for token in asked.get("input_ids", ())]},
        }

    with answering(odd) as url:
        forced = engine.teacher_logprobs(url, "xy", "ab")
    assert forced.logprobs is None
    assert (forced.why or "").startswith("the server's answer cannot be read: ")


@pytest.mark.parametrize("answer", [{}, {"tokens": None}, {"tokens": 1}])
@pytest.mark.parametrize("engine", [SGLANG, LLAMACPP], ids=lambda engine: engine.name)
def test_an_answer_of_another_form_is_a_why_in_a_sentence(engine: Engine, answer: Any) -> None:
    with answering(lambda *_: answer) as url:
        forced = engine.teacher_logprobs(url, "xy", "ab")
    assert forced.logprobs is None
    assert (forced.why or "").startswith("the server's answer cannot be read: ")


def test_the_continuation_begins_where_the_tokens_part() -> None:
    assert boundary([1, 2], [1, 2, 3, 4]) == 2
    assert boundary([1, 2], [1, 9, 4]) == 1  # the prompt's end and the continuation's beginning were joined
    assert boundary([], [5, 6]) == 1

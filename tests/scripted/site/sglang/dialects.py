"""What a request gets: SGLang's native dialect and the OpenAI one over the same decoder."""

from __future__ import annotations

import contextlib
import http.server
import json
import time
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sglang.answers import Step, forced, token_id
from sglang.faults import say
from sglang.generation import Generation

if TYPE_CHECKING:
    from sglang.server import ScriptedServer


class Handler(http.server.BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: ScriptedServer
    metrics: Mapping[str, Callable[[ScriptedServer], int]] = {
        "sglang:num_running_reqs": lambda server: server.in_flight,
        "sglang:num_queue_reqs": lambda _: 0,
        "sglang:num_requests_total": lambda server: server.ended,
        "sglang:prompt_tokens_total": lambda server: server.read,
        "sglang:generation_tokens_total": lambda server: server.generated,
        "sglang:spec_verify_calls_total": lambda server: server.verified,
    }

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:  # noqa: ARG002
        """Log as uvicorn does."""
        host, port = self.client_address[:2]
        say(f'INFO:     {host}:{port} - "{self.command} {self.path} HTTP/1.1" {code}')

    def do_GET(self) -> None:
        """Answer what can be asked without a body."""
        path = urlsplit(self.path).path
        server, args = self.server, self.server.args
        if path == "/health":
            self._json({})
        elif path == "/health_generate":
            self._json({}, 200 if server.warm else 503)
        elif path in {"/server_info", "/get_server_info"}:
            self._json(server.info())
        elif path in {"/model_info", "/get_model_info"}:
            self._json({"model_path": args.model_path, "is_generation": True})
        elif path == "/v1/models":
            card = {"id": server.served_name, "object": "model", "max_model_len": args.context_length or 4096}
            self._json({"object": "list", "data": [card]})
        elif path == "/v1/loads":
            load = {"dp_rank": 0, "num_running_reqs": server.in_flight, "num_waiting_reqs": 0}
            self._json({"loads": [load]})
        elif path == "/flush_cache":
            self._flush()
        elif path == "/metrics" and args.enable_metrics:
            self._metrics()
        else:
            self._json({"detail": "Not Found"}, 404)

    def do_POST(self) -> None:
        """Answer a generation, or a cache flush."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = urlsplit(self.path).path
        if path == "/flush_cache":
            self._flush()
        elif path == "/v1/tokenize":
            self._tokenize(json.loads(body))
        elif path not in {"/generate", "/v1/completions", "/v1/chat/completions"}:
            self._json({"detail": "Not Found"}, 404)
        elif not self.server.warm:
            self._json({"error": {"message": "The server is warming up."}}, 503)
        else:
            asked = json.loads(body)
            {"/generate": self._native, "/v1/completions": self._completion}.get(path, self._chat)(asked)

    def _tokenize(self, asked: dict[str, Any]) -> None:
        """Give the tokens of a text, or of messages in chat form."""
        if self.server.script.no_chat_form:
            self._json({"detail": "Internal Server Error"}, 500)
            return
        text = asked.get("prompt") or "\n".join(str(m["content"]) for m in asked["messages"])
        ids = self.server.tokenize(text)
        self._json({"tokens": ids, "count": len(ids), "max_model_len": 4096})

    def _native(self, asked: dict[str, Any]) -> None:
        sampling = asked.get("sampling_params") or {}
        prompt = asked.get("text") or asked.get("input_ids") or ""
        limit = sampling.get("max_new_tokens", 128)
        logprobs = bool(asked.get("return_logprob"))
        if logprobs and self.server.script.no_logprobs:
            self._json({"error": {"message": "return_logprob is not supported with this algorithm"}}, 400)
            return
        told: dict[str, Any] = {}
        if logprobs and asked.get("logprob_start_len") == 0 and asked.get("input_ids"):
            told["input_token_logprobs"] = forced(asked["input_ids"], self.server.script.logit_shift)

        def shape(generation: Generation, step: Step | None) -> dict[str, Any] | None:
            if step is None and generation.given:
                return None
            done = len(generation.given) == len(generation.tokens)
            return {
                "text": "".join(generation.given),
                "output_ids": [token_id(t) for t in generation.given],
                "meta_info": generation.meta_info(done=done, logprobs=logprobs),
            }

        ignore_eos = bool(sampling.get("ignore_eos"))
        self._answer(
            prompt, limit, ignore_eos, bool(asked.get("stream")), shape, _native_whole(logprobs, told)
        )

    def _completion(self, asked: dict[str, Any]) -> None:
        self._openai(asked, asked["prompt"], "text_completion", chat=False)

    def _chat(self, asked: dict[str, Any]) -> None:
        prompt = "\n".join(str(m["content"]) for m in asked["messages"])
        self._openai(asked, prompt, "chat.completion", chat=True)

    def _openai(self, asked: dict[str, Any], prompt: str | list[int], kind: str, *, chat: bool) -> None:
        limit = asked.get("max_completion_tokens") or asked.get("max_tokens") or 128
        head = {"id": uuid.uuid4().hex, "created": int(time.time()), "model": self.server.served_name}
        options = asked.get("stream_options") or {}
        wants_usage = bool(options.get("include_usage"))
        running = bool(options.get("continuous_usage_stats"))
        thinking = self.server.script.reasoning if chat else 0

        def part(given: list[str], before: int) -> dict[str, Any]:
            thought = "".join(t for i, t in enumerate(given, before) if i < thinking)
            text = "".join(t for i, t in enumerate(given, before) if i >= thinking)
            if not chat:
                return {"text": text}
            return {"role": "assistant", "content": text or None, "reasoning_content": thought or None}

        def shape(generation: Generation, step: Step | None) -> dict[str, Any] | None:
            chunk = head | {"object": f"{kind}.chunk" if chat else kind}
            if step is None:
                return chunk | {"choices": [], "usage": generation.usage()} if wants_usage else None
            before = len(generation.given) - len(step.tokens)
            done = len(generation.given) == len(generation.tokens)
            body = part(list(step.tokens), before)
            choice = {"index": 0, "finish_reason": generation.finish if done else None}
            usage = generation.usage() if running else None
            return chunk | {"choices": [choice | ({"delta": body} if chat else body)], "usage": usage}

        def whole(generation: Generation) -> dict[str, Any]:
            body = part(generation.given, 0)
            choice = {"index": 0, "finish_reason": generation.finish} | ({"message": body} if chat else body)
            return head | {"object": kind, "choices": [choice], "usage": generation.usage()}

        self._answer(prompt, limit, bool(asked.get("ignore_eos")), bool(asked.get("stream")), shape, whole)

    def _answer(
        self,
        prompt: str | list[int],
        limit: int,
        ignore_eos: bool,
        stream: bool,
        shape: Callable[[Generation, Step | None], dict[str, Any] | None],
        whole: Callable[[Generation], dict[str, Any]],
    ) -> None:
        """Run one generation; one of a single token is a probe and neither counts nor goes wrong."""
        server = self.server
        probe = limit <= 1
        with contextlib.nullcontext((0, 0)) if probe else server.counted() as place:
            if server.leaked and place[0] and place[0] % 4 == 0:
                self._json({"error": {"message": f"refused: Bearer {server.leaked}"}}, 500)
                return
            garbage = server.script.garbage if place[1] >= server.script.garbage_at else ""
            generation = server.generation(prompt, limit=limit, ignore_eos=ignore_eos, garbage=garbage)
            if not stream:
                for _ in server.decode(generation, place):
                    pass
                self._json(whole(generation))
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream; charset=utf-8")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            steps = server.decode(generation, place)
            try:
                for step in steps:
                    self._event(shape(generation, step))
                self._event(shape(generation, None))
                self._chunk(b"data: [DONE]\n\n")
                self._chunk(b"")
            except OSError:
                until = time.monotonic() + server.script.abandoned
                while time.monotonic() < until and next(steps, None):
                    pass
                raise

    def _event(self, value: dict[str, Any] | None) -> None:
        if value is not None:
            self._chunk(f"data: {json.dumps(value)}\n\n".encode())

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _json(self, value: Any, status: int = 200) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _flush(self) -> None:
        with self.server.lock:
            self.server.seen_prompts.clear()
        self._json({"success": True})

    def _metrics(self) -> None:
        label = f'{{model_name="{self.server.served_name}"}}'
        told = {name: count(self.server) for name, count in self.metrics.items()}
        # A counter of drafts appears with its first event.
        shown = {name: count for name, count in told.items() if count or "spec" not in name}
        text = "".join(f"{name}{label} {count}\n" for name, count in shown.items())
        data = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _native_whole(logprobs: bool, told: dict[str, Any]) -> Callable[[Generation], dict[str, Any]]:
    def whole(generation: Generation) -> dict[str, Any]:
        return {
            "text": "".join(generation.given),
            "output_ids": [token_id(t) for t in generation.given],
            "meta_info": generation.meta_info(done=True, logprobs=logprobs) | told,
        }

    return whole

"""The listening server: what its requests share, the scripted decoder, and what it says of itself."""

from __future__ import annotations

import argparse
import contextlib
import http.server
import os
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from sglang.answers import Step, acceptance, answer, steps, token_id, tokens_of
from sglang.dialects import Handler
from sglang.faults import say
from sglang.generation import Generation
from sglang.script import Script
from sglang.srt.server_args import installed_version


class ScriptedServer(http.server.ThreadingHTTPServer):
    """The listening server and what its requests share."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(
        self,
        args: argparse.Namespace,
        script: Script,
        die: Callable[[], NoReturn],
        handler: type[Handler] = Handler,
    ) -> None:
        self.args = args
        self.script = script
        self.die = die
        self.warm = False
        self.served_name = script.stranger or args.served_model_name or args.model_path
        self.lock = threading.Lock()
        self.in_flight = 0
        self.begun = 0
        self.ended = self.read = self.generated = self.verified = 0
        self.leaked = os.environ[script.leak] if script.leak else ""
        self.seen_prompts: set[str] = set()
        self.vocabulary: dict[int, str] = {}
        try:
            super().__init__((args.host, args.port), handler)
        except OSError as error:
            where = f"address ('{args.host}', {args.port}): {error.strerror}"
            say(f"ERROR:    [Errno {error.errno}] error while attempting to bind on {where}")
            raise SystemExit(1) from error

    def server_bind(self) -> None:
        """Bind without the name lookup that HTTPServer makes."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.args.host, self.args.port

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that went away."""

    @property
    def speculative(self) -> bool:
        """Whether this server drafts."""
        return self.args.speculative_algorithm is not None

    @contextlib.contextmanager
    def counted(self) -> Iterator[tuple[int, int]]:
        """Count a request while it runs; gives its number (from 1) and how many are in flight with it."""
        with self.lock:
            self.begun += 1
            self.in_flight += 1
            place = self.begun, self.in_flight
        try:
            yield place
        finally:
            with self.lock:
                self.in_flight -= 1

    def tokenize(self, text: str) -> list[int]:
        """Return a text's token ids; what they stand for is remembered, so that they may come back."""
        tokens = tokens_of(text)
        self.vocabulary |= {token_id(token): token for token in tokens}
        return [token_id(token) for token in tokens]

    def finished(self, generation: Generation) -> None:
        """Count a generation that is done, or was given up; only then does it enter the metrics."""
        with self.lock:
            self.ended += 1
            self.read += generation.prompt_tokens
            self.generated += len(generation.given)
            self.verified += generation.verified

    def generation(self, asked: str | list[int], *, limit: int, ignore_eos: bool, garbage: str) -> Generation:
        """Return a fresh generation; a prompt seen since the last flush is cached but for its last token."""
        prompt = asked if isinstance(asked, str) else "".join(self.vocabulary.get(i, f" {i}") for i in asked)
        tokens, finish = answer(
            prompt, limit=limit, ignore_eos=ignore_eos, garbage=garbage, error=self.script.wrong
        )
        if self.leaked:
            tokens = [*tokens[:-1], f" {self.leaked}"]
        count = max(1, len(prompt.split() if isinstance(asked, str) else asked))
        with self.lock:
            cached = count - 1 if prompt in self.seen_prompts and not self.args.disable_radix_cache else 0
            self.seen_prompts.add(prompt)
        length = acceptance(self.args.script_acceptance, prompt) if self.speculative else None
        return Generation(prompt, count, cached, tokens, finish, length, self.drafted)

    @property
    def drafted(self) -> int:
        """Draft tokens a step."""
        asked = self.args.speculative_num_draft_tokens
        return (asked - 1) if asked else (self.args.speculative_num_steps or 4)

    def decode(self, generation: Generation, place: tuple[int, int]) -> Iterator[Step]:
        """Yield steps at the scripted pace; dies or hangs in the middle where the script says so."""
        number, together = place
        script, args = self.script, self.args
        doomed = 0 < script.die_after < number or 0 < script.die_at <= together
        stuck = 0 < script.hang_after < number
        cost = args.script_step_cost if self.speculative else 1.0
        plan = list(steps(generation.tokens, length=generation.length, drafted=generation.drafted))
        fatal = min(2, len(plan) - 1)
        due = time.monotonic() + args.script_prefill_seconds
        try:
            for index, step in enumerate(plan):
                if index:
                    due += args.script_token_seconds * cost
                time.sleep(max(0.0, due - time.monotonic()))
                if index == fatal and doomed:
                    self.die()
                while index == fatal and stuck:
                    time.sleep(1)
                generation.take(step)
                yield step
        finally:
            self.finished(generation)

    def info(self) -> dict[str, Any]:
        """Return what /server_info reports: arguments in effect, one internal state a DP rank, version."""
        arguments = {k: v for k, v in vars(self.args).items() if not k.startswith("script")}
        arguments["attention_backend"] = arguments["attention_backend"] or "fa3"
        arguments["served_model_name"] = self.served_name
        running = arguments["max_running_requests"] or (48 if self.speculative else 4096)
        arguments["max_running_requests"] = running
        arguments |= self.script.override
        if self.leaked:
            arguments |= {"api_key": self.leaked, "tokenizer_path": f"/models/{self.leaked}"}
        state = arguments | {
            "_resolved_overrides": [["_scripted", self.script.override]] if self.script.override else [],
            "_runtime_mutations": [["scheduler.defaults", {"pp_max_micro_batch_size": running}]],
            "effective_max_running_requests_per_dp": running,
            "memory_usage": {"weight": 9.09, "kvcache": 95.98, "token_capacity": 698_890, "graph": 0.06},
        }
        return arguments | {
            "status": "ready",
            "max_total_num_tokens": 698_890,
            "internal_states": [state] * self.args.dp_size,
            "version": installed_version(),
        }

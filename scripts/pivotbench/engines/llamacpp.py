"""llama.cpp, served by ``llamacpp_serve.py`` inside the engine's own environment."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pivotbench.engines import llamacpp_forced
from pivotbench.engines.base import Command, Engine, FlagValue, LaunchPhase, flags_to_argv
from pivotbench.engines.catalogue import FlagCatalogue, FlagSpec
from pivotbench.engines.control import ask
from pivotbench.engines.counters import DraftCounters, read_counters, read_metrics
from pivotbench.engines.forced import Forced
from pivotbench.engines.spelling import LLAMACPP_SPELLING
from pivotbench.errors import UserError
from pivotbench.machine.containers import Container

SERVE_PROGRAM = Path(__file__).with_name("llamacpp_serve.py")
READ_FLAGS_SECONDS = 30.0
INFO_SECONDS = 5.0

# A log line starts with the time since the program began: minutes.seconds.milliseconds.microseconds.
STAMP = re.compile(r"^(\d+)\.(\d{2})\.(\d{3})\.(\d{3}) ")

# Phase -> the log line that ends it, in order.
PHASE_ENDS = (
    ("start", re.compile(r"srv +init: loading model")),
    ("weights", re.compile(r"constructing llama_context")),
    ("context", re.compile(r"warming up the model|load_model: initializing, n_slots")),
    ("warm-up", re.compile(r"load_model: initializing, n_slots")),
    ("listen", re.compile(r"listening on http")),
)

# Setting -> where the log states it, first match wins: a draft model's context comes after the target's.
LOGGED_SETTINGS = (
    ("threads", re.compile(r"system_info: n_threads = (\d+)")),
    ("threads-batch", re.compile(r"\(n_threads_batch = (\d+)\)")),
    ("threads-http", re.compile(r"using (\d+) threads for HTTP server")),
    ("ctx-size", re.compile(r"llama_context: n_ctx += (\d+)")),
    ("batch-size", re.compile(r"llama_context: n_batch += (\d+)")),
    ("ubatch-size", re.compile(r"llama_context: n_ubatch += (\d+)")),
    ("kv-unified", re.compile(r"llama_context: kv_unified += (\w+)")),
    ("cache-type-k", re.compile(r"\bK \((\w+)\):")),
    ("cache-type-v", re.compile(r"\bV \((\w+)\):")),
    ("load-mode", re.compile(r"\(load_mode = ([\w+]+)\)")),
)
FLASH_ATTENTION = (
    re.compile(r"resolve_fused_ops: Flash Attention (enabled|disabled)"),  # what "auto" came to
    re.compile(r"llama_context: flash_attn += (enabled|disabled)"),
)
WEIGHT_BUFFER = re.compile(r"load_tensors: +(\S+) model buffer size")
SPECULATION = re.compile(r"adding speculative implementation '([\w-]+)'")


class LlamaCpp(Engine):
    """The llama.cpp engine; see Engine for what each method promises."""

    name = "llamacpp"
    package = "xllamacpp"
    stop_grace_seconds = 5.0
    spelling = LLAMACPP_SPELLING

    def command(
        self, python: str, model: str, flags: Mapping[str, FlagValue], *, port: int, served_name: str
    ) -> Command:
        """Return the launch command; metrics are always on, so nothing is added for them."""
        return Command(
            study=(python, str(SERVE_PROGRAM), "--model", model, *flags_to_argv(flags)),
            added=("--alias", served_name, "--host", "127.0.0.1", "--port", str(port)),
        )

    def read_flags(
        self, python: Path, env: Mapping[str, str], container: Container | None = None
    ) -> FlagCatalogue:
        """Ask the serving program for its flags; it is never in a container."""
        assert container is None, "a study refuses a container of llamacpp"
        command = [str(python), str(SERVE_PROGRAM), "--print-flags"]
        try:
            answer = subprocess.run(
                command, capture_output=True, text=True, timeout=READ_FLAGS_SECONDS, env={**os.environ, **env}
            )
            data = json.loads(answer.stdout)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UserError(f"cannot ask llamacpp for its flags with {python}: {error}") from error
        except ValueError as error:
            said = answer.stderr.strip().splitlines()[-1:] or ["it printed nothing"]
            raise UserError(
                f"{python} cannot run llamacpp ({said[0]}); is xllamacpp installed there?"
            ) from error
        flags = tuple(
            FlagSpec(
                name=flag["name"],
                aliases=tuple(flag["aliases"]),
                choices=None if flag["choices"] is None else tuple(flag["choices"]),
                takes_value=flag["takes_value"],
                many=flag["many"],
                help=flag["help"],
            )
            for flag in data["flags"]
        )
        return FlagCatalogue(engine=self.name, version=data["version"], flags=flags)

    def server_info(self, url: str, log: Sequence[str] = ()) -> dict[str, Any]:
        """Return effective settings under their flags' names, from ``/props`` and the log.

        Beside the flags: ``slot-ctx-size`` (tokens), ``model-type`` (the file's quantization) and
        ``weight-buffers`` (where the weights lie; ``CPU_REPACK`` among them if some were repacked).
        """
        settings = logged_settings(log)
        try:
            _, props = ask(f"{url}/props", timeout_seconds=INFO_SECONDS)
            return {
                "model": props["model_path"],
                "model-type": props["model_ftype"],
                "parallel": props["total_slots"],
                "slot-ctx-size": props["default_generation_settings"]["n_ctx"],
                **settings,
            }
        except (OSError, http.client.HTTPException, KeyError, TypeError):
            return settings

    def launch_phases(self, log: Sequence[str]) -> list[LaunchPhase]:
        """Return start, weights, context (KV cache, compute buffers), warm-up and listen, in seconds."""
        phases = []
        began = 0.0
        waiting = list(PHASE_ENDS)
        for line in log:
            stamp = STAMP.match(line)
            if stamp is None:
                continue
            minutes, seconds, milli, micro = map(int, stamp.groups())
            at = minutes * 60 + seconds + milli / 1e3 + micro / 1e6
            while waiting and waiting[0][1].search(line):
                phases.append(LaunchPhase(waiting.pop(0)[0], round(at - began, 6)))
                began = at
        return phases

    def draft_counters(self, url: str) -> DraftCounters | None:
        """Return its counters; target passes are not among them.

        ``n_decode_total`` counts a pass over several requests once, and ``spec_decode_num_drafts_total``
        the passes over a draft alone.
        """
        return read_counters(
            url,
            output_tokens="llamacpp:tokens_predicted_total",
            proposed="llamacpp:spec_decode_num_draft_tokens_total",
            accepted="llamacpp:spec_decode_num_accepted_tokens_total",
            in_flight="llamacpp:requests_processing",
        )

    def requests_held(self, url: str, timeout_seconds: float) -> int | None:
        """Return the requests in its slots and those that wait for one; it answers between two batches."""
        told = read_metrics(url, timeout_seconds=timeout_seconds) or {}
        gauges = ("llamacpp:requests_processing", "llamacpp:requests_deferred")
        return round(sum(told[name] for name in gauges)) if told.keys() >= set(gauges) else None

    def teacher_logprobs(self, url: str, prompt: str, continuation: str) -> Forced:
        """Return the continuation's log probabilities, one request a token; see llamacpp_forced."""
        return llamacpp_forced.teacher_logprobs(url, prompt, continuation)


def logged_settings(log: Sequence[str]) -> dict[str, Any]:
    """Return the settings llama.cpp's startup log states as in effect, under their flags' names."""
    settings: dict[str, Any] = {}
    for name, pattern in LOGGED_SETTINGS:
        found = first_match(pattern, log)
        if found is not None:
            settings[name] = int(found) if found.isdigit() else found
    for pattern in FLASH_ATTENTION:
        found = first_match(pattern, log)
        if found is not None:
            settings["flash-attn"] = "on" if found == "enabled" else "off"
            break
    buffers = all_matches(WEIGHT_BUFFER, log)
    if buffers:
        settings["weight-buffers"] = ", ".join(buffers)
    if settings:
        settings["spec-type"] = ", ".join(all_matches(SPECULATION, log)) or "none"
    return settings


def first_match(pattern: re.Pattern[str], log: Sequence[str]) -> str | None:
    """Return the pattern's group in the first line that has it."""
    return next((m[1] for line in log if (m := pattern.search(line))), None)


def all_matches(pattern: re.Pattern[str], log: Sequence[str]) -> list[str]:
    """Return the pattern's group in every line that has it, each value once, in order."""
    return list(dict.fromkeys(m[1] for line in log if (m := pattern.search(line))))


LLAMACPP = LlamaCpp()

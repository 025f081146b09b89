"""SGLang: started by ``python -m sglang.launch_server``, asked in its native dialect."""

from __future__ import annotations

import http.client
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pivotbench.engines import sglang_changes, sglang_forced
from pivotbench.engines.base import (
    Change,
    Command,
    Engine,
    FlagValue,
    LaunchPhase,
    flags_to_argv,
)
from pivotbench.engines.catalogue import FlagCatalogue
from pivotbench.engines.control import ask
from pivotbench.engines.counters import DraftCounters, read_counters
from pivotbench.engines.endpoints import Dialect
from pivotbench.engines.forced import Forced
from pivotbench.engines.probing import Probe
from pivotbench.engines.sglang_log import launch_phases
from pivotbench.engines.spelling import SGLANG_SPELLING
from pivotbench.machine.containers import Container

_INFO_TIMEOUT_SECONDS = 10.0

# Arguments whose name is not that of their flag; both spellings are reported.
_FLAG_OF = {
    "tp_size": ("tp", "tensor-parallel-size"),
    "pp_size": ("pp", "pipeline-parallel-size"),
    "dp_size": ("dp", "data-parallel-size"),
    "ep_size": ("ep", "expert-parallel-size"),
    "fp4_gemm_runner_backend": ("fp4-gemm-backend",),
    "fp8_gemm_runner_backend": ("fp8-gemm-backend",),
    "cuda_graph_max_bs_decode": ("cuda-graph-max-bs",),
    "cuda_graph_bs_decode": ("cuda-graph-bs",),
    "speculative_algorithm": ("speculative-algo",),
    "speculative_draft_model_path": ("speculative-draft-model",),
}

# What a scheduler's state adds to the arguments; the rest of it repeats them.
_STATE_KEYS = (
    "_resolved_overrides",
    "_runtime_mutations",
    "effective_max_running_requests_per_dp",
    "memory_usage",
    "cuda_graph_config",
)
# Its workers rename themselves (setproctitle), which by default overwrites the environment that /proc shows
# of them, and with it the marker by which a launch's processes are known.
_ENVIRONMENT = {"SPT_NOENV": "1"}
_PARSER = """
import argparse
from sglang.srt.server_args import ServerArgs
parser = argparse.ArgumentParser()
ServerArgs.add_cli_args(parser)
"""
# These change while the server works, so they are no settings.
_PASSING_KEYS = ("last_gen_throughput", "avg_spec_accept_length")


class SGLang(Engine):
    """The engine adapter for SGLang; see Engine for what each method promises."""

    name = "sglang"
    parser = _PARSER
    dialects: tuple[Dialect, ...] = ("sglang-generate", "openai-chat", "openai-completions")
    # After SIGTERM it waits 5 s for "GPU activity to settle" before it ends its schedulers.
    stop_grace_seconds = 10.0
    package = "sglang"
    companions = ("torch", "flashinfer-python", "sglang-kernel", "sgl-kernel", "triton")
    in_containers = True
    slot_caches: Mapping[str, str] = {
        "FLASHINFER_WORKSPACE_BASE": "flashinfer",
        "TORCH_EXTENSIONS_DIR": "torch_extensions",
        "TVM_FFI_CACHE_DIR": "tvm-ffi",
        "SGLANG_JIT_CACHE_DIR": "sglang-jit",
    }
    simulates = "SGLANG_SIMULATE_ACC_LEN"
    spelling = SGLANG_SPELLING

    def command(
        self,
        python: str,
        model: str,
        flags: Mapping[str, FlagValue],
        *,
        port: int,
        served_name: str,
    ) -> Command:
        """Return the launch command; address, name and metrics are added to every launch alike."""
        return Command(
            study=(python, "-m", "sglang.launch_server", "--model-path", model, *flags_to_argv(flags)),
            added=(
                "--host",
                "127.0.0.1",
                "--port",
                str(port),
                "--served-model-name",
                served_name,
                "--enable-metrics",
            ),
            env=dict(_ENVIRONMENT),
        )

    def read_flags(
        self, python: Path, env: Mapping[str, str], container: Container | None = None
    ) -> FlagCatalogue:
        """Ask SGLang's own argument parser, under the variables of a launch. Raises UserError."""
        return super().read_flags(python, {**_ENVIRONMENT, **env}, container)

    def probe(self, url: str, served_name: str, *, timeout_seconds: float) -> Probe:
        """Ask for the served name, then for one generated token; both within ``timeout_seconds``.

        The name comes first: a stale server on the same port must be told apart even while it is
        busy. One token is asked for natively, because a chat answer of a reasoning model may hold
        no text yet; what counts is that a token was generated, not how it reads.
        """
        deadline = time.monotonic() + timeout_seconds
        try:
            status, models = ask(f"{url}/v1/models", timeout_seconds=timeout_seconds)
            if status != 200:
                return Probe("loading", f"/v1/models answers {status}")
            names = _served_names(models)
            if served_name not in names:
                return Probe("stranger", f"serves {', '.join(names) or 'nothing'} instead of {served_name}")
            body = {"text": "Hello", "sampling_params": {"max_new_tokens": 1, "temperature": 0}}
            left = max(0.1, deadline - time.monotonic())
            status, answer = ask(f"{url}/generate", body, timeout_seconds=left)
        except (OSError, http.client.HTTPException) as error:
            return Probe("loading", f"{type(error).__name__}: {error}")
        if status == 200 and isinstance(answer, dict):
            tokens = answer.get("meta_info", {}).get("completion_tokens", 0)
            if tokens:
                return Probe("ready")
        return Probe("loading", f"/generate answers {status} without a token")

    def server_info(self, url: str, log: Sequence[str] = ()) -> dict[str, Any]:  # noqa: ARG002
        """Return the arguments in effect, named as flags, and ``internal_states``; {} where none is reported.

        See effective.
        """
        for path in ("/server_info", "/get_server_info"):
            try:
                status, info = ask(f"{url}{path}", timeout_seconds=_INFO_TIMEOUT_SECONDS)
            except (OSError, http.client.HTTPException):
                return {}
            if status == 200 and isinstance(info, dict):
                return effective(info)
        return {}

    def changes(self, effective: Mapping[str, Any], log: Sequence[str]) -> list[Change]:
        """Return what its schedulers and its log say was chosen or changed; see sglang_changes."""
        return sglang_changes.changes(effective, log)

    def rank_differences(self, effective: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Return what its data-parallel schedulers say of themselves that differs."""
        return sglang_changes.differing_settings(effective)

    def launch_phases(self, log: Sequence[str]) -> list[LaunchPhase]:
        """Return the launch's phases in order, in whole seconds as the log's time stamps have them."""
        return launch_phases(log)

    def draft_counters(self, url: str) -> DraftCounters | None:
        """Return its counters: output tokens and verify steps, both of finished requests (0.5.16, 0.5.23).

        It counts no drafts. Its gauges ``spec_accept_length`` and ``spec_accept_rate`` hold the latest few
        decoding steps and not a run, and ``num_running_reqs`` lags behind; they are not used.
        """
        return read_counters(
            url,
            output_tokens="sglang:generation_tokens_total",
            verify_steps="sglang:spec_verify_calls_total",
        )

    def requests_held(self, url: str, timeout_seconds: float) -> int | None:
        """Return the requests that its schedulers run or queue, all data-parallel ranks together.

        Those whose client has gone are among them for two more seconds (``create_abort_task``). Schedulers
        tell at each prefill, every 15 decoding steps and when idle (0.5.16, 0.5.23), or when asked (0.5.9,
        0.5.12). The gauges of ``/metrics`` are not taken: a lone request is missing there for its first 40
        decoding steps, and up to 0.5.12 an idle server shows its last requests for half a minute.
        """
        try:
            _, told = ask(f"{url}/v1/loads", timeout_seconds=timeout_seconds)
            return int(sum(rank["num_running_reqs"] + rank["num_waiting_reqs"] for rank in told["loads"]))
        except (OSError, http.client.HTTPException, LookupError, TypeError):
            return None

    def teacher_logprobs(self, url: str, prompt: str, continuation: str) -> Forced:
        """Return the continuation's log probabilities in one request; see sglang_forced."""
        return sglang_forced.teacher_logprobs(url, prompt, continuation)


def effective(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return a /server_info answer as flags in effect and ``internal_states``.

    There is one internal state for each data-parallel rank. It is cut down to its overrides, limits
    and memory and to the arguments in which it differs from the launched ones. Where all ranks differ
    alike, theirs is the value in effect: they are what runs.
    """
    states = [state for state in info.get("internal_states") or [] if isinstance(state, dict)]
    arguments = {name: value for name, value in info.items() if name != "internal_states"}
    for name in arguments:
        if states and all(name in state and state[name] == states[0][name] for state in states):
            arguments[name] = states[0][name]
    flags: dict[str, Any] = {}
    for name, value in arguments.items():
        for flag in (name.replace("_", "-"), *_FLAG_OF.get(name, ())):
            flags[flag] = value
    flags["internal_states"] = [_trim(state, info) for state in states]
    return flags


def _trim(state: Mapping[str, Any], info: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in state.items()
        if name in _STATE_KEYS
        or (not name.startswith("_") and name not in _PASSING_KEYS and value != info.get(name))
    }


def _served_names(models: Any) -> list[str]:
    if not isinstance(models, dict):
        return []
    return [str(card["id"]) for card in models.get("data") or () if isinstance(card, dict) and "id" in card]


SGLANG = SGLang()

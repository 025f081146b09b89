"""Start the scripted vLLM: ``python3 -m vllm.entrypoints.openai.api_server --model M --port P ...``."""

from __future__ import annotations

import argparse
import json
import os
import signal
from collections.abc import Callable, Mapping
from typing import Any

from sglang.dialects import Handler
from sglang.faults import say
from sglang.script import parse_script
from sglang.server import ScriptedServer

from vllm.entrypoints.openai.cli_args import make_arg_parser
from vllm.utils.argparse_utils import FlexibleArgumentParser

PATHS = ("/health", "/v1/models", "/metrics", "/tokenize", "/v1/completions", "/v1/chat/completions")
LAUNCH_LINES = (
    "Model loading took 14.99 GiB memory and 4.21 seconds",
    "GPU KV cache size: 698,890 tokens",
    "Graph capturing finished in 9 secs, took 0.66 GiB",
    "init engine (profile, create kv cache, warmup model) took 21.50 s (compilation: 8.01 s)",
)


class VllmHandler(Handler):
    """vLLM's paths and no other; its counters go by its own names."""

    metrics: Mapping[str, Callable[[ScriptedServer], int]] = {
        "vllm:num_requests_running": lambda server: server.in_flight,
        "vllm:generation_tokens_total": lambda server: server.generated,
        "vllm:spec_decode_num_drafts_total": lambda server: server.verified,
        "vllm:spec_decode_num_draft_tokens_total": lambda server: server.verified * server.drafted,
        "vllm:spec_decode_num_accepted_tokens_total": lambda server: server.generated - server.verified,
    }

    def do_GET(self) -> None:
        """Answer what vLLM answers."""
        super().do_GET() if self.path in PATHS else self._json({"detail": "Not Found"}, 404)

    def do_POST(self) -> None:
        """Answer a generation, or the tokens of a text."""
        if self.path == "/tokenize":
            self.path = "/v1/tokenize"  # where SGLang has it, which the handler below speaks
        elif self.path not in PATHS:
            self._json({"detail": "Not Found"}, 404)
            return
        super().do_POST()


def main() -> None:
    """Read the command line, log a launch, serve until told to stop."""
    args = make_arg_parser(FlexibleArgumentParser()).parse_args()
    given = {k: v for k, v in vars(args).items() if not k.startswith("script") and v}
    say(f"(APIServer pid={os.getpid()}) INFO 11-30 12:00:00 [utils.py:233] non-default args: {given}")
    for line in LAUNCH_LINES:
        say(f"(EngineCore_DP0 pid={os.getpid()}) INFO 11-30 12:00:01 [core.py:259] {line}")
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    server = ScriptedServer(_as_sglang(args), parse_script(args.script), lambda: os._exit(1), VllmHandler)
    server.warm = True
    server.serve_forever()


def _as_sglang(args: argparse.Namespace) -> argparse.Namespace:
    """Return the arguments under the names by which the scripted server knows them."""
    drafts: dict[str, Any] = json.loads(args.speculative_config or "{}")
    return argparse.Namespace(
        **{name: value for name, value in vars(args).items() if name.startswith("script") or name == "port"},
        host=args.host or "127.0.0.1",
        model_path=args.model,
        served_model_name=args.served_model_name[0],
        enable_metrics=True,
        context_length=args.max_model_len,
        disable_radix_cache=False,
        speculative_algorithm=drafts.get("method"),
        speculative_num_draft_tokens=None,
        speculative_num_steps=drafts.get("num_speculative_tokens"),
    )


if __name__ == "__main__":
    main()

"""vLLM's OpenAI server as an engine of your own: copy this file to config/engines/vllm.py.

Written after vLLM 0.11 and tried against a stand-in that speaks as it does, not yet against a real one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pivotbench.engines.base import Command, Engine, FlagValue, LaunchPhase, flags_to_argv
from pivotbench.engines.counters import DraftCounters, read_counters
from pivotbench.engines.spelling import Spelling, Topic

ARGUMENTS = re.compile(r"non-default args: (\{.*\})")
CACHE_TOKENS = re.compile(r"GPU KV cache size: ([\d,]+) tokens")
PHASES = {
    "weights": re.compile(r"Model loading took .* and ([\d.]+) seconds"),
    "cuda_graphs": re.compile(r"Graph capturing finished in ([\d.]+) secs"),
    "warmup": re.compile(r"init engine \(.*\) took ([\d.]+) s"),  # the graphs' time is part of it
}


class Vllm(Engine):
    name = "vllm"
    package = "vllm"
    companions = ("torch", "flashinfer-python", "triton")
    parser = """
from vllm.entrypoints.openai.cli_args import make_arg_parser
try:
    from vllm.utils.argparse_utils import FlexibleArgumentParser
except ImportError:
    from vllm.utils import FlexibleArgumentParser
parser = make_arg_parser(FlexibleArgumentParser())
"""
    spelling = Spelling(
        requests=Topic("max-num-seqs", ("max_num_seqs",)),
        tokens=Topic("cache-tokens", ("cache_tokens",)),  # no flag asks for it
        tensor_parallel="tensor_parallel_size",
        data_parallel="data_parallel_size",
        dtype="dtype",
        quantization="quantization",
        cache_dtype="kv_cache_dtype",
        remedies={
            "speculate": {"speculative-config": '{"method": "ngram", "num_speculative_tokens": 4}'},
            "narrow_cache": {"kv-cache-dtype": "fp8"},
            "graphs": {"enforce-eager": False},
        },
    )

    def command(
        self, python: str, model: str, flags: Mapping[str, FlagValue], *, port: int, served_name: str
    ) -> Command:
        start = (python, "-m", "vllm.entrypoints.openai.api_server", "--model", model)
        address = ("--host", "127.0.0.1", "--port", str(port), "--served-model-name", served_name)
        return Command(study=start + flags_to_argv(flags), added=address)

    def server_info(self, url: str, log: Sequence[str] = ()) -> dict[str, Any]:
        """Return the flags that its log says it was given, and how many tokens its cache holds."""
        settings: dict[str, Any] = {}
        for line in log:
            if found := ARGUMENTS.search(line):
                given = ast.literal_eval(found[1])
                settings |= {name.replace("_", "-"): value for name, value in given.items()}
            if found := CACHE_TOKENS.search(line):
                settings["cache-tokens"] = int(found[1].replace(",", ""))
        return settings

    def launch_phases(self, log: Sequence[str]) -> list[LaunchPhase]:
        """Return the times that its log states, in the order it does."""
        seconds: dict[str, float] = {}
        for line in log:
            for name, pattern in PHASES.items():
                if found := pattern.search(line):
                    seconds[name] = float(found[1])
        if "warmup" in seconds:
            seconds["warmup"] -= seconds.get("cuda_graphs", 0.0)
        return [LaunchPhase(name, round(value, 3)) for name, value in seconds.items()]

    def draft_counters(self, url: str) -> DraftCounters | None:
        """Return what it counts of drafts; passes without a draft are not among them."""
        return read_counters(
            url,
            output_tokens="vllm:generation_tokens_total",
            proposed="vllm:spec_decode_num_draft_tokens_total",
            accepted="vllm:spec_decode_num_accepted_tokens_total",
            in_flight="vllm:num_requests_running",
        )


ENGINE = Vllm()

"""The command line: a handful of vLLM's own flags, then those of the scripted server."""

from __future__ import annotations

import argparse

from sglang.srt.server_args import add_script_flags


def make_arg_parser(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add every flag to ``parser`` and return it."""
    add = parser.add_argument
    add("model_tag", nargs="?", help="The model, as `vllm serve` takes it.")
    add("--model", default="Qwen/Qwen3-0.6B", help="Path or hub id of the weights.")
    add("--host", help="Address to listen on.")
    add("--port", type=int, default=8000, help="Port to listen on.")
    add("--served-model-name", nargs="+", help="Names under which the model answers.")
    add("--max-model-len", type=int, help="Longest context in tokens.")
    add("--max-num-seqs", type=int, help="Requests decoded at once.")
    add("--kv-cache-dtype", choices=["auto", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2"], default="auto")
    add("--enforce-eager", action=argparse.BooleanOptionalAction, default=False, help="No CUDA graphs.")
    add("--speculative-config", "-sc", help="JSON: method, num_speculative_tokens ...")
    add_script_flags(parser)
    return parser

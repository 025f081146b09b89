"""The command line: a handful of SGLang's own flags with their choices, then the script's."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

ATTENTION_BACKENDS = ["triton", "torch_native", "flashinfer", "fa3", "fa4", "trtllm_mha", "cutlass_mla"]
MOE_RUNNERS = [
    "auto",
    "deep_gemm",
    "triton",
    "triton_kernel",
    "flashinfer_trtllm",
    "flashinfer_cutlass",
    "flashinfer_mxfp4",
    "flashinfer_cutedsl",
    "cutlass",
    "marlin",
]
FP4_GEMMS = ["auto", "flashinfer_cudnn", "flashinfer_cutedsl", "flashinfer_cutlass", "flashinfer_trtllm"]
FP8_GEMMS = ["auto", "deep_gemm", "flashinfer_trtllm", "flashinfer_cutlass", "cutlass", "triton"]
# Choices differ from version to version; those of 0.5.20 and later have one more here.
VERSION_FILES = "sglang-*.dist-info/METADATA"
SAMPLERS = ["flashinfer", "pytorch"]
ALGORITHMS = ["EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM"]


class DeprecatedStore(argparse.Action):
    """A retired flag as SGLang has them: ``new_flag`` names its successor, ``const_value`` what it sets."""

    def __init__(self, *args: Any, new_flag: str, const_value: Any = None, **kwargs: Any) -> None:
        self.new_flag, self.const_value = new_flag, const_value
        super().__init__(*args, **kwargs)

    def __call__(self, _: Any, namespace: argparse.Namespace, values: Any, option: Any = None) -> None:
        """Store the value and say what to use instead."""
        print(f"'{option}' is deprecated. Use '{self.new_flag}' instead.", file=sys.stderr, flush=True)
        setattr(namespace, self.dest, self.const_value if self.const_value is not None else values)


def installed_version() -> str:
    """Return the version in the metadata on the search path, as importlib would find it."""
    site = next(Path(p) for p in sys.path if any(Path(p).glob(VERSION_FILES)))
    metadata = next(site.glob(VERSION_FILES)).read_text(encoding="utf-8")
    return metadata.partition("\nVersion:")[2].partition("\n")[0].strip()


class ServerArgs:
    """Where SGLang keeps its flags; only the parser is needed here."""

    @staticmethod
    def add_cli_args(parser: argparse.ArgumentParser) -> None:
        """Add every flag to ``parser``."""
        _add_engine_flags(parser)
        add_script_flags(parser)


def _add_engine_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--model-path", "--model", required=True, help="Path or hub id of the weights.")
    add("--host", default="127.0.0.1", help="Address to listen on.")
    add("--port", type=int, default=30000, help="Port to listen on.")
    add("--served-model-name", help="Name under which the model answers.")
    add("--enable-metrics", action="store_true", help="Offer Prometheus metrics.")
    add("--revision", help="Revision of the weights.")
    add("--tensor-parallel-size", "--tp-size", "--tp", dest="tp_size", type=int, default=1, help="GPUs.")
    add("--data-parallel-size", "--dp-size", "--dp", dest="dp_size", type=int, default=1, help="Copies.")
    add("--dtype", choices=["auto", "half", "float16", "bfloat16", "float32"], default="auto")
    add("--quantization", choices=["fp8", "modelopt_fp4", "modelopt_fp8", "awq", "gptq"])
    add("--kv-cache-dtype", choices=["auto", "fp8_e5m2", "fp8_e4m3", "bfloat16"], default="auto")
    add("--mem-fraction-static", type=float, help="Share of GPU memory for weights and KV cache.")
    add("--max-running-requests", type=int, help="Requests decoded at once.")
    add("--context-length", type=int, help="Longest context in tokens.")
    add("--cuda-graph-bs", type=int, nargs="+", help="Batch sizes to capture.")
    add("--cuda-graph-max-bs-decode", type=int, help="Largest batch to capture.")
    add(
        "--cuda-graph-max-bs",
        dest="cuda_graph_max_bs_decode",
        type=int,
        action=DeprecatedStore,
        new_flag="--cuda-graph-max-bs-decode",
    )
    add(
        "--monokernel-backend",
        dest="enable_amd_monokernel",
        choices=["amd"],
        action=DeprecatedStore,
        new_flag="--enable-amd-monokernel",
        const_value=True,
    )
    add(
        "--enable-flashinfer-allreduce-fusion",
        action="store_true",
        help="(Deprecated: use --flashinfer-allreduce-fusion-backend=auto) Fuse.",
    )
    oracle = ["token_oracle"] if os.environ.get("SGLANG_KV_CANARY_ENABLE_TOKEN_ORACLE") else []
    add("--sampling-backend", choices=[*SAMPLERS, *oracle], help="Kernels for sampling.")
    add("--disable-radix-cache", action="store_true", help="Do not reuse prefixes.")
    add("--disable-cuda-graph", action="store_true", help="Do not capture graphs.")
    add("--attention-backend", choices=ATTENTION_BACKENDS)
    runners = MOE_RUNNERS + (["flashinfer_megamoe"] if installed_version() >= "0.5.20" else [])
    add("--moe-runner-backend", choices=runners, default="auto")
    add("--fp4-gemm-backend", dest="fp4_gemm_runner_backend", choices=FP4_GEMMS, default="auto")
    add("--fp8-gemm-backend", dest="fp8_gemm_runner_backend", choices=FP8_GEMMS, default="auto")
    add("--speculative-algorithm", choices=ALGORITHMS)
    add("--speculative-draft-model-path", "--speculative-draft-model", help="Path or hub id of the draft.")
    add("--speculative-num-steps", type=int, help="Draft steps before each verification.")
    add("--speculative-eagle-topk", type=int, help="Branches a step.")
    add("--speculative-num-draft-tokens", type=int, help="Tokens verified at once.")


def add_script_flags(parser: argparse.ArgumentParser) -> None:
    """Add what steers the scripted server, under whichever engine's name."""
    add = parser.add_argument
    add("--script", nargs="+", default=[], help="Behaviours: NAME, NAME=VALUE or a JSON object of them.")
    add("--script-token-seconds", type=float, default=0.002, help="Time of one decoding step.")
    add("--script-prefill-seconds", type=float, default=0.002, help="Time before the first token.")
    add("--script-step-cost", type=float, default=1.2, help="A verify step's time over a plain step's.")
    add("--script-acceptance", nargs="+", default=["2.0"], help="Tokens a step: WORD=LENGTH or LENGTH.")
    add("--script-events", help="File that gets START, READY and STOP lines.")

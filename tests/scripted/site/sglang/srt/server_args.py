"""The command line: a handful of SGLang's own flags with their choices, then the script's."""

from __future__ import annotations

import argparse

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
ALGORITHMS = ["EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM"]


class ServerArgs:
    """Where SGLang keeps its flags; only the parser is needed here."""

    @staticmethod
    def add_cli_args(parser: argparse.ArgumentParser) -> None:
        """Add every flag to ``parser``."""
        _add_engine_flags(parser)
        _add_script_flags(parser)


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
    add("--disable-radix-cache", action="store_true", help="Do not reuse prefixes.")
    add("--disable-cuda-graph", action="store_true", help="Do not capture graphs.")
    add("--attention-backend", choices=ATTENTION_BACKENDS)
    add("--moe-runner-backend", choices=MOE_RUNNERS, default="auto")
    add("--fp4-gemm-backend", dest="fp4_gemm_runner_backend", choices=FP4_GEMMS, default="auto")
    add("--fp8-gemm-backend", dest="fp8_gemm_runner_backend", choices=FP8_GEMMS, default="auto")
    add("--speculative-algorithm", choices=ALGORITHMS)
    add("--speculative-draft-model-path", "--speculative-draft-model", help="Path or hub id of the draft.")
    add("--speculative-num-steps", type=int, help="Draft steps before each verification.")
    add("--speculative-eagle-topk", type=int, help="Branches a step.")
    add("--speculative-num-draft-tokens", type=int, help="Tokens verified at once.")


def _add_script_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--script", nargs="+", default=[], help="Behaviours: NAME, NAME=VALUE or a JSON object of them.")
    add("--script-token-seconds", type=float, default=0.002, help="Time of one decoding step.")
    add("--script-prefill-seconds", type=float, default=0.002, help="Time before the first token.")
    add("--script-step-cost", type=float, default=1.2, help="A verify step's time over a plain step's.")
    add("--script-acceptance", nargs="+", default=["2.0"], help="Tokens a step: WORD=LENGTH or LENGTH.")
    add("--script-events", help="File that gets START, READY and STOP lines.")

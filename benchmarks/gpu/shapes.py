"""Folders with the config.json of a large model and a tokenizer, for servers with dummy weights.

    python -m benchmarks.gpu.shapes /models --tokenizer FOLDER

Speed, memory and launches of such a server are the model's; what it answers means nothing.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Where tokenizer_config.json states no length, transformers puts 10^30 in its place and saves it too, which
# SGLang 0.5.16 cannot write as JSON: its /v1/tokenize then answers HTTP 500.
TOKENIZER_LENGTH = 32768

COMMON: dict[str, Any] = {
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "head_dim": 128,
    "hidden_act": "silu",
    "initializer_range": 0.02,
    "max_position_embeddings": 40960,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 1000000,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "use_cache": True,
    "use_sliding_window": False,
    "vocab_size": 151936,
}
SPARSE: dict[str, Any] = {
    "decoder_sparse_step": 1,
    "hidden_size": 2048,
    "max_window_layers": 12,
    "mlp_only_layers": [],
    "norm_topk_prob": True,
    "num_experts": 128,
    "num_hidden_layers": 12,
    "output_router_logits": False,
    "router_aux_loss_coef": 0.001,
}
SHAPES: dict[str, dict[str, Any]] = {
    "Qwen3-8B-shape": {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "hidden_size": 4096,
        "intermediate_size": 12288,
        "max_window_layers": 36,
        "num_attention_heads": 32,
        "num_hidden_layers": 36,
        "num_key_value_heads": 8,
    },
    "Qwen3-MoE-12-layers-shape": SPARSE
    | {
        "architectures": ["Qwen3MoeForCausalLM"],
        "model_type": "qwen3_moe",
        "intermediate_size": 6144,
        "moe_intermediate_size": 768,
        "num_attention_heads": 32,
        "num_experts_per_tok": 8,
        "num_key_value_heads": 4,
    },
    "Qwen3-Next-12-layers-shape": SPARSE
    | {
        "architectures": ["Qwen3NextForCausalLM"],
        "model_type": "qwen3_next",
        "full_attention_interval": 4,
        "head_dim": 256,
        "intermediate_size": 5120,
        "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": 128,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 32,
        "linear_value_head_dim": 128,
        "moe_intermediate_size": 512,
        "num_attention_heads": 16,
        "num_experts_per_tok": 10,
        "num_key_value_heads": 2,
        "partial_rotary_factor": 0.25,
        "shared_expert_intermediate_size": 512,
    },
}


def write_shapes(out: Path, tokenizer: Path) -> Iterator[Path]:
    """Write a folder for each shape under ``out`` and yield it; exits with one line where that cannot be."""
    settings = _read(tokenizer / "tokenizer_config.json")
    settings["model_max_length"] = min(settings.get("model_max_length", TOKENIZER_LENGTH), TOKENIZER_LENGTH)
    words = _read(tokenizer / "tokenizer.json")
    largest = max(_token_ids(words), default=0)
    if largest >= COMMON["vocab_size"]:
        raise SystemExit(
            f"error: {tokenizer}: token {largest} is beyond the shapes' {COMMON['vocab_size']} tokens; "
            "take a smaller tokenizer"
        )
    _fill(words)
    for name, shape in SHAPES.items():
        folder = out / name
        folder.mkdir(parents=True, exist_ok=True)
        for file in tokenizer.iterdir():
            if file.is_file() and file.name != "config.json":
                shutil.copy(file, folder)
        (folder / "tokenizer.json").write_text(json.dumps(words), encoding="utf-8")
        (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=1))
        (folder / "config.json").write_text(json.dumps(COMMON | shape, indent=1))
        yield folder


def _fill(words: dict[str, Any]) -> None:
    """Give every id of the shapes a word: dummy weights write any of them, and one without is no text."""
    vocabulary = words["model"]["vocab"]
    if not isinstance(vocabulary, dict):
        raise SystemExit("error: --tokenizer: the vocabulary is a list; take a tokenizer of kind BPE")
    taken = set(_token_ids(words))
    free = (number for number in range(COMMON["vocab_size"]) if number not in taken)
    vocabulary.update({f"<{number}>": number for number in free})


def _token_ids(tokenizer: dict[str, Any]) -> Iterator[int]:
    vocabulary = tokenizer.get("model", {}).get("vocab", {})
    yield from vocabulary.values() if isinstance(vocabulary, dict) else range(len(vocabulary))
    yield from (token["id"] for token in tokenizer.get("added_tokens", ()))


def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise SystemExit(
            f"error: {path}: {error}; --tokenizer wants tokenizer.json and tokenizer_config.json"
        ) from error


def main() -> None:
    """Write the folders and name them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("out", type=Path, help="where the folders go, e.g. /models")
    parser.add_argument(
        "--tokenizer", type=Path, required=True, help="folder of a tokenizer with a chat form"
    )
    arguments = parser.parse_args()
    for folder in write_shapes(arguments.out, arguments.tokenizer):
        print(folder)


if __name__ == "__main__":
    main()

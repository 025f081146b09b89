"""SmolLM2 as safetensors from its GGUF, the same made deep and, where asked, a draft of three layers.

    python -m benchmarks.gpu.models SmolLM2-135M-Instruct.Q4_1.gguf /models --prompts config/prompts

Run it with the Python that SGLang is installed in: it needs torch, transformers and gguf. Writes
SmolLM2-135M-Instruct, SmolLM2-135M-deep and, with ``--prompts``, SmolLM2-draft under the folder named.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch
from benchmarks.gpu.draft import Lesson, prompts_to_teach, taught
from benchmarks.gpu.layers import deepened
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

PLAIN, DEEP, DRAFT = "SmolLM2-135M-Instruct", "SmolLM2-135M-deep", "SmolLM2-draft"
# A chat answer ends with this token; the GGUF's tokenizer names another.
BEGIN, END = "<|im_start|>", "<|im_end|>"
QUESTION = "What is 2+2?"


def read_gguf(gguf: Path) -> tuple[Any, Any]:
    """Return the model, dequantised to bf16, and its tokenizer."""
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    model = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.bfloat16)
    tokenizer.bos_token, tokenizer.eos_token, tokenizer.pad_token = BEGIN, END, END
    tokenizer.padding_side = "left"
    tokenizer.model_max_length = model.config.max_position_embeddings
    model.config.eos_token_id = model.generation_config.eos_token_id = tokenizer.eos_token_id
    return model, tokenizer


def with_layers(model: Any, weights: dict[str, Any], layers: int) -> Any:
    """Return a model like ``model`` with so many layers and these weights, in float32."""
    like = model.config.to_dict()
    for derived in ("num_hidden_layers", "layer_types", "architectures", "model_type"):
        like.pop(derived, None)
    made = LlamaForCausalLM(LlamaConfig(**like, num_hidden_layers=layers))
    lacking = made.load_state_dict(weights, strict=False)
    if lacking.unexpected_keys or set(lacking.missing_keys) - {"lm_head.weight"}:
        raise SystemExit(f"error: {model.config.model_type} is not laid out as Llama is: {lacking}")
    made.tie_weights()
    made.generation_config = model.generation_config
    return made.eval()


def check_same(model: Any, deep: Any, tokenizer: Any) -> None:
    """Exit unless the deep model's logits are the plain one's to the bit."""
    said = [{"role": "user", "content": QUESTION}]
    asked = tokenizer.apply_chat_template(
        said, add_generation_prompt=True, return_tensors="pt", return_dict=True
    ).to(model.device)
    with torch.no_grad():
        difference = (model(**asked).logits - deep(**asked).logits).abs().max().item()
    layers = deep.config.num_hidden_layers
    print(f"{DEEP}: {layers} layers; largest difference of logits {difference}", flush=True)
    if difference:
        raise SystemExit(f"error: {DEEP} answers otherwise than {PLAIN} and cannot stand for it")


def main() -> None:
    """Make the three folders."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("gguf", type=Path, help="SmolLM2-135M-Instruct, in any format")
    parser.add_argument("out", type=Path, help="where the folders go, e.g. /models")
    parser.add_argument(
        "--prompts", type=Path, help="folder of prompt sets, as config/prompts, to teach the draft with"
    )
    parser.add_argument(
        "--measured",
        nargs="*",
        default=["free", "repetitive", "continuations"],
        help="prompt sets that are measured and therefore not taught (%(default)s)",
    )
    parser.add_argument(
        "--times", type=int, default=4, help="layers for each of the model's own (%(default)s)"
    )
    parser.add_argument("--answer-tokens", type=int, default=160, help="length of the taught answers")
    parser.add_argument("--steps", type=int, default=500, help="optimiser steps of the draft (%(default)s)")
    arguments = parser.parse_args()
    if not arguments.gguf.is_file():
        parser.error(f"{arguments.gguf} is no file")
    prompts = prompts_to_teach(arguments.prompts, set(arguments.measured)) if arguments.prompts else []
    device = "cuda" if torch.cuda.is_available() else "cpu"

    model, tokenizer = read_gguf(arguments.gguf)
    layers = model.config.num_hidden_layers
    weights = {name: weight.detach().clone() for name, weight in model.state_dict().items()}
    deeper = deepened(weights, arguments.times, torch.zeros_like)
    deep = with_layers(model, deeper, layers * arguments.times).to(model.dtype)
    for name, made in ((PLAIN, model), (DEEP, deep)):
        made.save_pretrained(arguments.out / name)
        tokenizer.save_pretrained(arguments.out / name)
    # As it is served: one cast to bf16 in memory has its rotary frequencies rounded, a loaded one has not.
    deep = AutoModelForCausalLM.from_pretrained(arguments.out / DEEP, dtype=model.dtype).to(device).eval()
    model = model.to(device).eval()
    check_same(model, deep, tokenizer)
    del deep
    if not prompts:
        return

    lesson = Lesson(arguments.answer_tokens, arguments.steps)
    draft = taught(model, tokenizer, prompts, lesson, lambda kept, n: with_layers(model, kept, n))
    draft.save_pretrained(arguments.out / DRAFT)
    tokenizer.save_pretrained(arguments.out / DRAFT)


if __name__ == "__main__":
    main()

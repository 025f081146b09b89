"""The modules of a model's layers and their sizes, from its config.json; cache and state a request.

Laid out as the transformers library has the published architectures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pivotbench.model.weight_formats import UnknownShape

Config = Mapping[str, Any]


@dataclass(frozen=True)
class Module:
    """Weights of one module, of which a pass over one token reads the share ``read``.

    ``quantised``: whether modules of its kind ever are.
    """

    name: str
    parameters: int
    read: float = 1.0
    quantised: bool = True


FAMILIES = frozenset(
    {
        "llama",
        "qwen2",
        "qwen3",
        "qwen3_moe",
        "qwen3_next",
        "qwen3_5_text",
        "qwen3_5_moe_text",
        "deepseek_v2",
        "deepseek_v3",
    }
)


def is_hybrid(family: str) -> bool:
    """Return whether some of its layers are linear attention, which keeps a state instead of a cache."""
    return family in ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text")


def _is_latent(family: str) -> bool:
    return family in ("deepseek_v2", "deepseek_v3")


def expert_count(c: Config) -> int:
    """Return the routed experts of a sparse layer; 0 for a dense model."""
    return int(c.get("num_experts") or c.get("n_routed_experts") or 0)


def _head_size(c: Config) -> int:
    return int(c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"])


def _layer_kinds(c: Config) -> list[str]:
    """Which layers of a hybrid keep a cache: those named so, or every n-th."""
    if kinds := c.get("layer_types"):
        return [str(kind) for kind in kinds]
    every = int(c.get("full_attention_interval") or 4)
    layers = range(int(c["num_hidden_layers"]))
    return ["linear_attention" if (i + 1) % every else "full_attention" for i in layers]


def modules_of(c: Config, family: str) -> Iterator[Module]:
    """Yield all modules with their sizes; raises KeyError, TypeError or UnknownShape for an odd config."""
    vocabulary = c["vocab_size"] * c["hidden_size"]
    tied = bool(c.get("tie_word_embeddings", False))
    # Of the embedding a token reads one row; tied, the same weights are the head.
    yield Module("embed_tokens", vocabulary, 1.0 if tied else 0.0, quantised=False)
    if not tied:
        yield Module("lm_head", vocabulary, quantised=False)
    yield Module("norm", c["hidden_size"], quantised=False)
    kinds = _layer_kinds(c) if is_hybrid(family) else ["full_attention"] * c["num_hidden_layers"]
    if len(kinds) != c["num_hidden_layers"] or set(kinds) - {"full_attention", "linear_attention"}:
        raise UnknownShape("layer_types names layers that are not known")
    for i, kind in enumerate(kinds):
        at = f"layers.{i}"
        yield Module(f"{at}.norms", 2 * c["hidden_size"], quantised=False)
        if kind == "linear_attention":
            yield from _linear_attention(c, f"{at}.linear_attn")
        elif _is_latent(family):
            yield from _latent_attention(c, f"{at}.self_attn")
        else:
            yield from _attention(c, family, f"{at}.self_attn")
        if _is_sparse(c, family, i):
            yield from _mixture(c, family, f"{at}.mlp")
        else:
            yield from _feed_forward(c["hidden_size"], c["intermediate_size"], f"{at}.mlp", c)


def _attention(c: Config, family: str, at: str) -> Iterator[Module]:
    hidden, size = c["hidden_size"], _head_size(c)
    queries, keys = c["num_attention_heads"] * size, _kv_heads(c) * size
    gate = 2 if is_hybrid(family) else 1  # the gate of the output comes out of q_proj too
    yield Module(f"{at}.q_proj", hidden * queries * gate)
    yield Module(f"{at}.k_proj", hidden * keys)
    yield Module(f"{at}.v_proj", hidden * keys)
    yield Module(f"{at}.o_proj", queries * hidden)
    if family == "qwen2" or c.get("attention_bias"):
        output = 0 if family == "qwen2" else hidden
        yield Module(f"{at}.bias", queries * gate + 2 * keys + output, quantised=False)
    if family.startswith("qwen3"):
        yield Module(f"{at}.qk_norm", 2 * size, quantised=False)


def _latent_attention(c: Config, at: str) -> Iterator[Module]:
    """Multi-head latent attention: DeepSeek-V2, https://arxiv.org/abs/2405.04434, section 2.1."""
    hidden, heads = c["hidden_size"], c["num_attention_heads"]
    latent, rope = c["kv_lora_rank"], c["qk_rope_head_dim"]
    query = heads * (c["qk_nope_head_dim"] + rope)
    if rank := c.get("q_lora_rank"):
        yield Module(f"{at}.q_a_proj", hidden * rank)
        yield Module(f"{at}.q_b_proj", rank * query)
        yield Module(f"{at}.q_a_layernorm", rank, quantised=False)
    else:
        yield Module(f"{at}.q_proj", hidden * query)
    yield Module(f"{at}.kv_a_proj_with_mqa", hidden * (latent + rope))
    yield Module(f"{at}.kv_a_layernorm", latent, quantised=False)
    yield Module(f"{at}.kv_b_proj", latent * heads * (c["qk_nope_head_dim"] + c["v_head_dim"]))
    yield Module(f"{at}.o_proj", heads * c["v_head_dim"] * hidden)


def _linear_attention(c: Config, at: str) -> Iterator[Module]:
    """Gated DeltaNet, https://arxiv.org/abs/2412.06464, as Qwen3-Next lays it out."""
    hidden, heads = c["hidden_size"], c["linear_num_value_heads"]
    keys, values = _linear_widths(c)
    yield Module(f"{at}.in_proj_qkv", hidden * (2 * keys + values))
    yield Module(f"{at}.in_proj_z", hidden * values)
    yield Module(f"{at}.in_proj_ba", hidden * 2 * heads)
    yield Module(f"{at}.out_proj", values * hidden)
    small = 2 * heads + c["linear_value_head_dim"]  # the decay, its bias, the gated norm
    convolution = (2 * keys + values) * c["linear_conv_kernel_dim"]
    yield Module(f"{at}.conv1d", convolution + small, quantised=False)


def _is_sparse(c: Config, family: str, layer: int) -> bool:
    if not expert_count(c):
        return False
    if _is_latent(family):
        return layer >= int(c.get("first_k_dense_replace", 0)) and not layer % int(c.get("moe_layer_freq", 1))
    dense = c.get("mlp_only_layers") or ()
    return layer not in dense and not (layer + 1) % int(c.get("decoder_sparse_step", 1))


def _mixture(c: Config, family: str, at: str) -> Iterator[Module]:
    hidden, experts, size = c["hidden_size"], expert_count(c), c["moe_intermediate_size"]
    correction = experts if c.get("topk_method") == "noaux_tc" else 0
    yield Module(f"{at}.gate", hidden * experts + correction, quantised=False)
    share = c["num_experts_per_tok"] / experts
    yield Module(f"{at}.experts.0.gate_proj", experts * 3 * hidden * size, share)
    if _is_latent(family):
        if shared := c.get("n_shared_experts"):
            yield from _feed_forward(hidden, shared * size, f"{at}.shared_experts", c)
    elif shared := c.get("shared_expert_intermediate_size"):
        yield from _feed_forward(hidden, shared, f"{at}.shared_expert", c)
        yield Module(f"{at}.shared_expert_gate", hidden, quantised=False)


def _feed_forward(hidden: int, size: int, at: str, c: Config) -> Iterator[Module]:
    for name in ("gate_proj", "up_proj", "down_proj"):
        yield Module(f"{at}.{name}", hidden * size)
    if c.get("mlp_bias"):
        yield Module(f"{at}.bias", 2 * size + hidden, quantised=False)


def _kv_heads(c: Config) -> int:
    return int(c.get("num_key_value_heads") or c["num_attention_heads"])


def cache_of(c: Config, family: str) -> tuple[int, int, int]:
    """Return the numbers a token has in all caches, the heads GPUs can share, the layers with a cache."""
    layers = int(c["num_hidden_layers"])
    if _is_latent(family):
        return layers * (c["kv_lora_rank"] + c["qk_rope_head_dim"]), 1, layers
    if is_hybrid(family):
        layers = _layer_kinds(c).count("full_attention")
    return layers * 2 * _kv_heads(c) * _head_size(c), _kv_heads(c), layers


def _linear_widths(c: Config) -> tuple[int, int]:
    keys = int(c["linear_num_key_heads"] * c["linear_key_head_dim"])
    return keys, int(c["linear_num_value_heads"] * c["linear_value_head_dim"])


def state_bytes(c: Config, width: float) -> int:
    """Return one request's recurrent state: a matrix a value head, in float32, and a window of convolution.

    ``width``: bytes of a number of the window.
    """
    keys, values = _linear_widths(c)
    linear = _layer_kinds(c).count("linear_attention")
    matrices = values * c["linear_key_head_dim"] * 4
    window = (2 * keys + values) * (c["linear_conv_kernel_dim"] - 1) * width
    return int(linear * (matrices + window))

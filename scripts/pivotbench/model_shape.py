"""A model's size from its config.json alone: weights, what one token reads of them, cache a token.

Counts follow the modules of the published architectures as the transformers library lays them out; the tests
hold them against the published sizes. Heads for multi-token prediction and vision towers are left out: plain
decoding of text reads neither.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

Config = Mapping[str, Any]

_WIDTHS = {"float32": 4.0, "float": 4.0, "bfloat16": 2.0, "float16": 2.0, "half": 2.0}
_NVFP4_BYTES = 0.5 + 1 / 16  # four bits, and one 8-bit scale for 16 of them
_MXFP4_BYTES = 0.5 + 1 / 32


class UnknownShape(ValueError):
    """The model's size cannot be told; the message says why, as half a sentence."""


@dataclass(frozen=True)
class ModelShape:
    """What a model weighs; bytes are of the whole model, however many GPUs share it.

    ``read_bytes`` are the weights that every forward pass reads whatever the tokens: attention, dense layers,
    shared experts, head. Of ``expert_bytes``, all routed experts together, a token reads
    ``experts_per_token`` in ``experts``. ``attention_layers`` keep a cache: ``kv_values_per_token`` numbers
    in all of them together, each ``kv_bytes_each`` wide. ``state_bytes_per_request``: the recurrent state of
    linear attention, of fixed size. ``kv_heads``: how many GPUs can share the cache before they hold copies;
    1 for latent attention.
    """

    architecture: str
    layers: int
    attention_layers: int
    hidden_size: int
    heads: int
    kv_heads: int
    experts: int
    experts_per_token: int
    parameters: int
    active_parameters: int
    dtype: str
    quantization: str | None
    read_bytes: int
    expert_bytes: int
    weight_bytes: int
    kv_values_per_token: int
    kv_bytes_each: float
    state_bytes_per_request: int

    @property
    def kv_bytes_per_token(self) -> float:
        """Bytes that one token of context takes in the cache of all layers, copies not counted."""
        return self.kv_values_per_token * self.kv_bytes_each

    @property
    def active_bytes(self) -> float:
        """Weight bytes that a pass over one token reads."""
        return self.read_bytes + self.expert_bytes * self.expert_share(1)

    def expert_share(self, tokens: float) -> float:
        """Return the share of the routed experts that a pass over ``tokens`` tokens reads.

        Each token goes to k of E experts; of independent tokens with an even router 1 - (1 - k/E)^tokens
        is expected. Real routers favour some experts, so that this is an upper estimate of what is read.
        """
        return 1 - (1 - self.experts_per_token / self.experts) ** tokens if self.experts else 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the shape as plain JSON values; ``ModelShape(**values)`` reads them back."""
        return asdict(self)


def read_shape(
    model: str,
    *,
    revision: str | None = None,
    dtype: str | None = None,
    quantization: str | None = None,
    kv_dtype: str | None = None,
) -> ModelShape:
    """Return the shape of a model folder, or of a hub id whose config.json lies in the hub's local cache.

    Nothing is downloaded. Raises UnknownShape where there is no config.json or its architecture is unknown.
    """
    folder = _folder(model, revision)
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UnknownShape(f"{path} cannot be read") from error
    except ValueError as error:
        raise UnknownShape(f"{path} is not JSON") from error
    apart = folder / "hf_quant_config.json"  # where the Model Optimizer says how it quantised
    if isinstance(config, dict) and "quantization_config" not in config and apart.is_file():
        try:
            told = json.loads(apart.read_text(encoding="utf-8"))["quantization"]
            config["quantization_config"] = {"quant_method": "modelopt", **told}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UnknownShape(f"{apart} does not say how the weights are quantised") from error
    return shape_of(config, dtype=dtype, quantization=quantization, kv_dtype=kv_dtype)


def shape_of(
    config: Any, *, dtype: str | None = None, quantization: str | None = None, kv_dtype: str | None = None
) -> ModelShape:
    """Return the shape that a config.json states.

    ``dtype``, ``quantization`` and ``kv_dtype`` are what the server was asked for; None and ``auto`` leave
    it to the model. Raises UnknownShape for what is not known here, rather than guess.
    """
    if not isinstance(config, Mapping):
        raise UnknownShape("config.json is no mapping")
    text = config.get("text_config") if isinstance(config.get("text_config"), Mapping) else config
    assert isinstance(text, Mapping)
    family = str(text.get("model_type") or config.get("model_type"))
    if family not in _FAMILIES:
        raise UnknownShape(f"the architecture {family} is not known")
    if text.get("use_sliding_window"):
        raise UnknownShape("layers with a sliding window are not counted")
    name = _dtype(text, config, dtype)
    try:
        stored = text.get("quantization_config") or config.get("quantization_config")
        scheme = _scheme(stored, quantization)
        modules = list(_modules(text, family))
        kv_values, kv_heads, attention_layers = _cache(text, family)
        state = _state_bytes(text, _WIDTHS[name]) if _is_hybrid(family) else 0
        experts = int(_experts(text))
        shape = ModelShape(
            architecture=family,
            layers=int(text["num_hidden_layers"]),
            attention_layers=attention_layers,
            hidden_size=int(text["hidden_size"]),
            heads=int(text["num_attention_heads"]),
            kv_heads=kv_heads,
            experts=experts,
            experts_per_token=int(text["num_experts_per_tok"]) if experts else 0,
            parameters=sum(m.parameters for m in modules),
            active_parameters=round(sum(m.parameters * m.read for m in modules)),
            dtype=name,
            quantization=scheme.name if scheme else None,
            read_bytes=round(sum(_bytes(m, name, scheme) for m in modules if m.read == 1)),
            expert_bytes=round(sum(_bytes(m, name, scheme) for m in modules if 0 < m.read < 1)),
            weight_bytes=round(sum(_bytes(m, name, scheme) for m in modules)),
            kv_values_per_token=kv_values,
            kv_bytes_each=_kv_width(kv_dtype, name),
            state_bytes_per_request=state,
        )
    except (KeyError, TypeError, ZeroDivisionError, ValueError) as error:
        if isinstance(error, UnknownShape):
            raise
        raise UnknownShape(f"config.json of a {family} lacks or misstates {error}") from error
    return shape


# Weights.


@dataclass(frozen=True)
class _Module:
    """Weights of one module; ``read``: the share that a pass over one token reads; 1: all of them."""

    name: str
    parameters: int
    read: float = 1.0
    quantised: bool = True


_FAMILIES = frozenset(
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


def _is_hybrid(family: str) -> bool:
    return family in ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text")


def _is_latent(family: str) -> bool:
    return family in ("deepseek_v2", "deepseek_v3")


def _experts(c: Config) -> int:
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


def _modules(c: Config, family: str) -> Iterator[_Module]:
    vocabulary = c["vocab_size"] * c["hidden_size"]
    tied = bool(c.get("tie_word_embeddings", False))
    # Of the embedding a token reads one row; tied, the same weights are the head.
    yield _Module("embed_tokens", vocabulary, 1.0 if tied else 0.0, quantised=False)
    if not tied:
        yield _Module("lm_head", vocabulary, quantised=False)
    yield _Module("norm", c["hidden_size"], quantised=False)
    kinds = _layer_kinds(c) if _is_hybrid(family) else ["full_attention"] * c["num_hidden_layers"]
    if len(kinds) != c["num_hidden_layers"] or set(kinds) - {"full_attention", "linear_attention"}:
        raise UnknownShape("layer_types names layers that are not known")
    for i, kind in enumerate(kinds):
        at = f"layers.{i}"
        yield _Module(f"{at}.norms", 2 * c["hidden_size"], quantised=False)
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


def _attention(c: Config, family: str, at: str) -> Iterator[_Module]:
    hidden, size = c["hidden_size"], _head_size(c)
    queries, keys = c["num_attention_heads"] * size, _kv_heads(c) * size
    gate = 2 if _is_hybrid(family) else 1  # the gate of the output comes out of q_proj too
    yield _Module(f"{at}.q_proj", hidden * queries * gate)
    yield _Module(f"{at}.k_proj", hidden * keys)
    yield _Module(f"{at}.v_proj", hidden * keys)
    yield _Module(f"{at}.o_proj", queries * hidden)
    if family == "qwen2" or c.get("attention_bias"):
        output = 0 if family == "qwen2" else hidden
        yield _Module(f"{at}.bias", queries * gate + 2 * keys + output, quantised=False)
    if family.startswith("qwen3"):
        yield _Module(f"{at}.qk_norm", 2 * size, quantised=False)


def _latent_attention(c: Config, at: str) -> Iterator[_Module]:
    """Multi-head latent attention: DeepSeek-V2, https://arxiv.org/abs/2405.04434, section 2.1."""
    hidden, heads = c["hidden_size"], c["num_attention_heads"]
    latent, rope = c["kv_lora_rank"], c["qk_rope_head_dim"]
    query = heads * (c["qk_nope_head_dim"] + rope)
    if rank := c.get("q_lora_rank"):
        yield _Module(f"{at}.q_a_proj", hidden * rank)
        yield _Module(f"{at}.q_b_proj", rank * query)
        yield _Module(f"{at}.q_a_layernorm", rank, quantised=False)
    else:
        yield _Module(f"{at}.q_proj", hidden * query)
    yield _Module(f"{at}.kv_a_proj_with_mqa", hidden * (latent + rope))
    yield _Module(f"{at}.kv_a_layernorm", latent, quantised=False)
    yield _Module(f"{at}.kv_b_proj", latent * heads * (c["qk_nope_head_dim"] + c["v_head_dim"]))
    yield _Module(f"{at}.o_proj", heads * c["v_head_dim"] * hidden)


def _linear_attention(c: Config, at: str) -> Iterator[_Module]:
    """Gated DeltaNet, https://arxiv.org/abs/2412.06464, as Qwen3-Next lays it out."""
    hidden, heads = c["hidden_size"], c["linear_num_value_heads"]
    keys, values = _linear_widths(c)
    yield _Module(f"{at}.in_proj_qkv", hidden * (2 * keys + values))
    yield _Module(f"{at}.in_proj_z", hidden * values)
    yield _Module(f"{at}.in_proj_ba", hidden * 2 * heads)
    yield _Module(f"{at}.out_proj", values * hidden)
    small = 2 * heads + c["linear_value_head_dim"]  # the decay, its bias, the gated norm
    convolution = (2 * keys + values) * c["linear_conv_kernel_dim"]
    yield _Module(f"{at}.conv1d", convolution + small, quantised=False)


def _is_sparse(c: Config, family: str, layer: int) -> bool:
    if not _experts(c):
        return False
    if _is_latent(family):
        return layer >= int(c.get("first_k_dense_replace", 0)) and not layer % int(c.get("moe_layer_freq", 1))
    dense = c.get("mlp_only_layers") or ()
    return layer not in dense and not (layer + 1) % int(c.get("decoder_sparse_step", 1))


def _mixture(c: Config, family: str, at: str) -> Iterator[_Module]:
    hidden, experts, size = c["hidden_size"], _experts(c), c["moe_intermediate_size"]
    correction = experts if c.get("topk_method") == "noaux_tc" else 0
    yield _Module(f"{at}.gate", hidden * experts + correction, quantised=False)
    share = c["num_experts_per_tok"] / experts
    yield _Module(f"{at}.experts.0.gate_proj", experts * 3 * hidden * size, share)
    if _is_latent(family):
        if shared := c.get("n_shared_experts"):
            yield from _feed_forward(hidden, shared * size, f"{at}.shared_experts", c)
    elif shared := c.get("shared_expert_intermediate_size"):
        yield from _feed_forward(hidden, shared, f"{at}.shared_expert", c)
        yield _Module(f"{at}.shared_expert_gate", hidden, quantised=False)


def _feed_forward(hidden: int, size: int, at: str, c: Config) -> Iterator[_Module]:
    for name in ("gate_proj", "up_proj", "down_proj"):
        yield _Module(f"{at}.{name}", hidden * size)
    if c.get("mlp_bias"):
        yield _Module(f"{at}.bias", 2 * size + hidden, quantised=False)


# Cache and state.


def _kv_heads(c: Config) -> int:
    return int(c.get("num_key_value_heads") or c["num_attention_heads"])


def _cache(c: Config, family: str) -> tuple[int, int, int]:
    """Numbers a token in the cache of all layers, heads that GPUs can share, layers that keep a cache."""
    layers = int(c["num_hidden_layers"])
    if _is_latent(family):
        return layers * (c["kv_lora_rank"] + c["qk_rope_head_dim"]), 1, layers
    if _is_hybrid(family):
        layers = _layer_kinds(c).count("full_attention")
    return layers * 2 * _kv_heads(c) * _head_size(c), _kv_heads(c), layers


def _linear_widths(c: Config) -> tuple[int, int]:
    keys = int(c["linear_num_key_heads"] * c["linear_key_head_dim"])
    return keys, int(c["linear_num_value_heads"] * c["linear_value_head_dim"])


def _state_bytes(c: Config, width: float) -> int:
    """One request's recurrent state, a matrix a value head kept in float32, and its window of convolution."""
    keys, values = _linear_widths(c)
    linear = _layer_kinds(c).count("linear_attention")
    matrices = values * c["linear_key_head_dim"] * 4
    window = (2 * keys + values) * (c["linear_conv_kernel_dim"] - 1) * width
    return int(linear * (matrices + window))


# Widths.


@dataclass(frozen=True)
class _Scheme:
    """How weights are quantised: bytes a weight with its scales, and which modules are left as they are."""

    name: str
    bytes_each: float
    left_out: Sequence[str] = ()


def _dtype(text: Config, config: Config, asked: str | None) -> str:
    """The weights' type; engines load a checkpoint in single precision in half, unless asked otherwise."""
    if asked and asked != "auto":
        name = asked
    else:
        stored = next(
            (c[key] for c in (text, config) for key in ("dtype", "torch_dtype") if c.get(key)), "float32"
        )
        name = "float16" if stored == "float32" else str(stored)
    if name not in _WIDTHS:
        raise UnknownShape(f"the width of {name} is not known")
    return name


def _kv_width(asked: str | None, dtype: str) -> float:
    if not asked or asked == "auto":
        return _WIDTHS[dtype]
    if asked.startswith(("fp8", "float8")):
        return 1.0
    if asked.startswith(("fp4", "float4")):
        return _NVFP4_BYTES
    if asked in _WIDTHS or asked == "bf16":
        return _WIDTHS.get(asked, 2.0)
    raise UnknownShape(f"the width of a cache in {asked} is not known")


def _scheme(stored: Config | None, asked: str | None) -> _Scheme | None:
    if stored:
        return _stored_scheme(stored)
    if not asked:
        return None
    # Quantised while loading: linear layers alone, scales are negligible.
    if asked in ("fp8", "w8a8_fp8", "w8a8_int8"):
        return _Scheme(asked, 1.0)
    if asked == "mxfp8":
        return _Scheme(asked, 1.0 + 1 / 32)
    raise UnknownShape(f"the width of weights quantised to {asked} on loading is not known")


def _stored_scheme(stored: Config) -> _Scheme:
    method = str(stored.get("quant_method") or "").lower()
    left_out = [
        str(pattern)
        for key in ("ignore", "exclude_modules", "modules_to_not_convert", "ignored_layers")
        for pattern in stored.get(key) or ()
    ]
    if method.startswith("modelopt"):
        algorithm = str(stored.get("quant_algo") or "").upper()
        widths = {"NVFP4": _NVFP4_BYTES, "FP8": 1.0}
        if algorithm in widths:
            return _Scheme(algorithm.lower(), widths[algorithm], left_out)
        raise UnknownShape(f"the width of weights in modelopt's {algorithm or 'format'} is not known")
    if method == "fp8":
        block = stored.get("weight_block_size")
        scale = 4 / math.prod(block) if block else 0.0
        return _Scheme("fp8", 1.0 + scale, left_out)
    if method == "mxfp4":
        return _Scheme("mxfp4", _MXFP4_BYTES, left_out)
    if method in ("awq", "gptq"):
        bits, group = int(stored["bits"]), int(stored["group_size"])
        scales = (2 + bits / 8) / group if group > 0 else 0.0  # half-precision scale and packed zero point
        return _Scheme(f"{method} int{bits}", bits / 8 + scales, left_out)
    if method == "compressed-tensors":
        weights = [group.get("weights") or {} for group in (stored.get("config_groups") or {}).values()]
        kinds = {(w.get("type"), w.get("num_bits"), w.get("group_size")) for w in weights}
        if len(kinds) == 1:
            kind, width, size = kinds.pop()
            if (kind, width, size) == ("float", 4, 16):
                return _Scheme("nvfp4", _NVFP4_BYTES, left_out)
            if width in (4, 8):
                name = f"{'fp' if kind == 'float' else 'int'}{width}"
                return _Scheme(name, width / 8 + (2 / size if size and size > 0 else 0.0), left_out)
    raise UnknownShape(f"the width of weights quantised by {method or 'an unnamed method'} is not known")


def _bytes(module: _Module, dtype: str, scheme: _Scheme | None) -> float:
    kept = scheme is None or not module.quantised or _left_out(module.name, scheme.left_out)
    return module.parameters * (_WIDTHS[dtype] if kept or scheme is None else scheme.bytes_each)


def _left_out(name: str, patterns: Sequence[str]) -> bool:
    """Whether a module is named: as it is, as a part of its path, by a glob, or by ``re:`` an expression."""
    for pattern in patterns:
        if pattern.startswith("re:"):
            if re.match(pattern[3:], f"model.{name}"):
                return True
            continue
        bare = re.sub(r"^(model\.|language_model\.)+", "", pattern)
        if fnmatchcase(name, bare) or fnmatchcase(name, f"{bare}.*") or fnmatchcase(f"model.{name}", pattern):
            return True
        if "*" not in bare and f".{bare}." in f".{name}.":
            return True
    return False


def _folder(model: str, revision: str | None) -> Path:
    path = Path(model).expanduser()
    if path.is_dir():
        return path
    if path.exists():
        raise UnknownShape(f"{path.name} is a file and has no config.json")
    hub = os.environ.get("HF_HUB_CACHE") or str(
        Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface") / "hub"
    )
    cached = Path(hub) / f"models--{model.replace('/', '--')}"
    try:
        commit = (cached / "refs" / (revision or "main")).read_text(encoding="utf-8").strip()
    except OSError:
        commit = revision or ""
    folder = cached / "snapshots" / commit
    if not commit or not folder.is_dir():
        raise UnknownShape(f"{model} is neither a folder nor in the hub's local cache")
    return folder

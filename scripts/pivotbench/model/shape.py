"""A model's size from its config.json alone: weights, what one token reads of them, cache a token.

Counts follow the modules of the published architectures as the transformers library lays them out; the tests
hold them against the published sizes. Heads for multi-token prediction and vision towers are left out: plain
decoding of text reads neither.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pivotbench.model.layers import FAMILIES, cache_of, expert_count, is_hybrid, modules_of, state_bytes
from pivotbench.model.weight_formats import (
    WIDTHS,
    UnknownShape,
    cache_width,
    dtype_of,
    module_bytes,
    scheme_of,
)

__all__ = ["ModelShape", "UnknownShape", "read_shape", "shape_of"]


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
    if family not in FAMILIES:
        raise UnknownShape(f"the architecture {family} is not known")
    if text.get("use_sliding_window"):
        raise UnknownShape("layers with a sliding window are not counted")
    name = dtype_of(text, config, dtype)
    try:
        stored = text.get("quantization_config") or config.get("quantization_config")
        scheme = scheme_of(stored, quantization)
        modules = list(modules_of(text, family))
        kv_values, kv_heads, attention_layers = cache_of(text, family)
        state = state_bytes(text, WIDTHS[name]) if is_hybrid(family) else 0
        experts = int(expert_count(text))
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
            read_bytes=round(
                sum(
                    module_bytes(m.name, m.parameters, m.quantised, name, scheme)
                    for m in modules
                    if m.read == 1
                )
            ),
            expert_bytes=round(
                sum(
                    module_bytes(m.name, m.parameters, m.quantised, name, scheme)
                    for m in modules
                    if 0 < m.read < 1
                )
            ),
            weight_bytes=round(
                sum(module_bytes(m.name, m.parameters, m.quantised, name, scheme) for m in modules)
            ),
            kv_values_per_token=kv_values,
            kv_bytes_each=cache_width(kv_dtype, name),
            state_bytes_per_request=state,
        )
    except (KeyError, TypeError, ZeroDivisionError, ValueError) as error:
        if isinstance(error, UnknownShape):
            raise
        raise UnknownShape(f"config.json of a {family} lacks or misstates {error}") from error
    return shape


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

"""How SGLang would fill a GPU's memory with a model, told from the model's shape and the flags.

SGLang gives weights and caches together the share ``mem-fraction-static`` of a GPU, and the cache what the
weights leave of it (0.5.16: srt/server_args.py, _handle_gpu_memory_settings; srt/mem_cache/
kv_cache_configurator.py). What CUDA, kernels and graphs take is not counted, so that tokens are an upper
estimate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pivotbench.engines.findings import fraction, number
from pivotbench.model.shape import ModelShape

MIB = 1 << 20
_LARGE_GPU_MIB = 60 * 1024
_RESERVED_ON_LARGE_MIB = 10 * 1024
_RECURRENT_SHARE = 0.9  # --mamba-full-memory-ratio: recurrent states to cache
# Memory of a GPU in MiB below which a prefill has at most so many tokens.
_CHUNKS = ((35 * 1024, 2048), (60 * 1024, 4096), (160 * 1024, 8192))
_LARGEST_CHUNK = 16384


@dataclass(frozen=True)
class MemoryEstimate:
    """What one GPU, the smallest, is to hold.

    ``static_mib``: for weights and caches together. ``cache_tokens``: for how many tokens of context the
    cache has room at most; negative where the weights alone are more than ``static_mib``. Draft figures are
    0 without a draft and None where its size is unknown.
    """

    gpu_mib: int
    static_mib: int
    weights_mib: int
    draft_weights_mib: int | None
    cache_bytes_per_token: int
    draft_cache_bytes_per_token: int | None
    cache_tokens: int


@dataclass(frozen=True)
class Layout:
    """How a model is divided: ``tensor`` ranks of a layer, of which attention is shared by ``attention``."""

    tensor: int
    attention: int
    pipeline: int

    @classmethod
    def of(cls, flags: Mapping[str, Any]) -> Layout:
        """Return the layout of canonical flags; DP attention keeps a copy of attention in each group."""
        tensor, pipeline = number(flags.get("tp-size")) or 1, number(flags.get("pp-size")) or 1
        groups = number(flags.get("attn-dp-size")) or (
            (number(flags.get("dp-size")) or 1) if "enable-dp-attention" in flags else 1
        )
        return cls(tensor, max(1, tensor // groups), pipeline)

    def weight_bytes(self, shape: ModelShape) -> float:
        """Return the weight bytes of one GPU: routed experts over all ranks, all else over one group's."""
        dense = shape.weight_bytes - shape.expert_bytes
        return (dense / self.attention + shape.expert_bytes / self.tensor) / self.pipeline

    def cache_bytes_per_token(self, shape: ModelShape) -> int:
        """Return the cache bytes of one token on one GPU; ranks beyond the number of heads hold copies."""
        heads = max(1, shape.kv_heads // self.attention)
        return round(shape.kv_bytes_per_token * heads / shape.kv_heads / self.pipeline)


def estimate(
    flags: Mapping[str, Any], gpu_mib: int, shape: ModelShape, draft: ModelShape | None = None
) -> MemoryEstimate:
    """Return the estimate for canonical flags on GPUs of at least ``gpu_mib``.

    ``draft``: the shape of a separate draft model, None where there is none or its size is unknown.
    """
    layout = Layout.of(flags)
    static = _static_bytes(flags, gpu_mib, layout)
    weights, each = layout.weight_bytes(shape), layout.cache_bytes_per_token(shape)
    draft_weights, draft_each = _draft(flags, layout, shape, draft)
    room = static - weights - (draft_weights or 0)
    if shape.state_bytes_per_request and room > 0:
        room = _beside_states(room, flags, layout, shape)
    return MemoryEstimate(
        gpu_mib=gpu_mib,
        static_mib=round(static / MIB),
        weights_mib=round(weights / MIB),
        draft_weights_mib=None if draft_weights is None else round(draft_weights / MIB),
        cache_bytes_per_token=each,
        draft_cache_bytes_per_token=draft_each,
        cache_tokens=int(room // max(1, each + (draft_each or 0))),
    )


def _static_bytes(flags: Mapping[str, Any], gpu_mib: int, layout: Layout) -> float:
    """The share asked for, or what is left of the reserve SGLang takes by itself, graphs not counted."""
    share = fraction(flags.get("mem-fraction-static"))
    if share is not None:
        return share * gpu_mib * MIB
    chunk = number(flags.get("chunked-prefill-size")) or next(
        (tokens for below, tokens in _CHUNKS if gpu_mib < below), _LARGEST_CHUNK
    )
    reserved = 512 + 1.5 * max(chunk, 2048) + layout.tensor * layout.pipeline * 128
    if gpu_mib > _LARGE_GPU_MIB:
        reserved = max(reserved, _RESERVED_ON_LARGE_MIB)
    return (gpu_mib - reserved) * MIB


def _draft(
    flags: Mapping[str, Any], layout: Layout, shape: ModelShape, draft: ModelShape | None
) -> tuple[float | None, int | None]:
    """Weight bytes and cache bytes a token of the draft; the model's own heads count as one layer of it."""
    algorithm = str(flags.get("speculative-algorithm") or "").upper()
    if algorithm in ("", "NGRAM"):
        return 0, 0
    if draft is not None:
        return layout.weight_bytes(draft), layout.cache_bytes_per_token(draft)
    if "speculative-draft-model-path" in flags:
        return None, None
    if algorithm == "STANDALONE":  # the target drafts for itself
        return layout.weight_bytes(shape), layout.cache_bytes_per_token(shape)
    layer = layout.weight_bytes(shape) * layout.pipeline / shape.layers
    return layer, round(layout.cache_bytes_per_token(shape) * layout.pipeline / shape.attention_layers)


def _beside_states(room: float, flags: Mapping[str, Any], layout: Layout, shape: ModelShape) -> float:
    """What recurrent states leave for the cache: a set number of them, or a set share."""
    states = number(flags.get("max-mamba-cache-size"))
    if states is not None:
        return room - states * shape.state_bytes_per_request / layout.attention / layout.pipeline
    return room / (1 + (fraction(flags.get("mamba-full-memory-ratio")) or _RECURRENT_SHARE))

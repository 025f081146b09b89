"""How much of a GPU a model takes is told before it is loaded, as real launches on an H200 took it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from test_model_shape import DEEPSEEK_V3, QWEN3_8B, QWEN3_30B_A3B, QWEN3_NEXT_80B_A3B

from pivotbench.engines.sglang_memory import estimate
from pivotbench.model.shape import ModelShape, shape_of

LOGS = Path(__file__).parents[1] / "data" / "sglang-logs"
H200_MIB = 143_771
GIB = 1 << 30

MOE = QWEN3_30B_A3B | {"num_hidden_layers": 12}  # as it was launched
HYBRID = QWEN3_NEXT_80B_A3B
LATENT = DEEPSEEK_V3

LAUNCHES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("8b-fa3", QWEN3_8B, {}),
    ("8b-triton", QWEN3_8B, {}),
    ("8b-fp8", QWEN3_8B, {"quantization": "fp8"}),
    ("moe-triton", MOE, {}),
    ("tp2-8b-fa3", QWEN3_8B, {"tp-size": 2}),
    ("tp2-8b-ngram-sim", QWEN3_8B, {"tp-size": 2, "speculative-algorithm": "NGRAM"}),
]


def logged(name: str) -> tuple[float, int, float]:
    """Return what a launch logged of a GPU: weights in GiB, tokens in the cache, the cache in GiB."""
    log = (LOGS / f"{name}.log").read_text(encoding="utf-8")
    weights = re.search(r"Load weight end\..*mem usage=([\d.]+) GB", log)
    cache = re.search(r"#tokens: (\d+), K size: ([\d.]+) GB, V size: ([\d.]+) GB", log)
    assert weights and cache
    return float(weights[1]), int(cache[1]), float(cache[2]) + float(cache[3])


def shape(config: dict[str, Any], flags: dict[str, Any]) -> ModelShape:
    return shape_of(config, quantization=flags.get("quantization"), kv_dtype=flags.get("kv-cache-dtype"))


@pytest.mark.parametrize(("name", "config", "flags"), LAUNCHES, ids=[name for name, *_ in LAUNCHES])
def test_a_real_launch_took_what_is_estimated(
    name: str, config: dict[str, Any], flags: dict[str, Any]
) -> None:
    """Weights within 5 %, tokens within 3 %; cache bytes a token exactly, as far as two decimals tell."""
    weights_gib, tokens, cache_gib = logged(name)
    told = estimate({"mem-fraction-static": 0.8, **flags}, H200_MIB, shape(config, flags))
    assert told.weights_mib / 1024 == pytest.approx(weights_gib, rel=0.05)
    assert told.cache_bytes_per_token == pytest.approx(cache_gib * GIB / tokens, abs=0.01 * GIB / tokens)
    assert told.draft_weights_mib == 0
    assert tokens <= told.cache_tokens == pytest.approx(tokens, rel=0.03)


def test_a_draft_model_takes_its_weights_and_its_share_of_every_token() -> None:
    flags = {"speculative-algorithm": "STANDALONE", "speculative-draft-model-path": "draft"}
    small = shape_of(QWEN3_8B | {"num_hidden_layers": 4})
    alone = estimate({}, H200_MIB, shape_of(QWEN3_8B))
    drafted = estimate(flags, H200_MIB, shape_of(QWEN3_8B), small)
    assert drafted.draft_cache_bytes_per_token == alone.cache_bytes_per_token // 9
    assert drafted.draft_weights_mib == pytest.approx(small.weight_bytes / (1 << 20), abs=1)
    assert drafted.cache_tokens < 0.9 * alone.cache_tokens


def test_heads_of_the_models_own_count_as_one_layer() -> None:
    told = estimate({"speculative-algorithm": "NEXTN"}, H200_MIB, shape_of(MOE))
    assert told.draft_weights_mib == pytest.approx(told.weights_mib / 12, abs=1)
    assert told.draft_cache_bytes_per_token == told.cache_bytes_per_token / 12


def test_a_draft_of_unknown_size_is_not_guessed() -> None:
    flags = {"speculative-algorithm": "EAGLE3", "speculative-draft-model-path": "draft"}
    assert estimate(flags, H200_MIB, shape_of(QWEN3_8B)).draft_weights_mib is None


def test_without_a_share_the_engines_own_reserve_is_left_out() -> None:
    told = estimate({}, H200_MIB, shape_of(QWEN3_8B))
    assert H200_MIB - told.static_mib >= 10 * 1024
    assert estimate({}, 24 * 1024, shape_of(QWEN3_8B)).static_mib < 24 * 1024 - 3000


def test_gpus_beyond_the_number_of_heads_hold_copies_of_the_cache() -> None:
    each = {n: estimate({"tp-size": n}, H200_MIB, shape_of(MOE)).cache_bytes_per_token for n in (1, 2, 4, 8)}
    assert each[2] == each[1] / 2
    assert each[8] == each[4] == each[1] / 4


def test_latent_attention_keeps_the_whole_cache_on_each_gpu() -> None:
    latent = shape_of(LATENT)
    one, eight = (estimate({"tp-size": n}, H200_MIB, latent) for n in (1, 8))
    assert one.cache_bytes_per_token == eight.cache_bytes_per_token == 61 * (512 + 64) * 2


def test_dp_attention_copies_all_but_the_routed_experts() -> None:
    latent = shape_of(LATENT)
    plain = estimate({"tp-size": 8}, H200_MIB, latent)
    grouped = estimate({"tp-size": 8, "dp-size": 8, "enable-dp-attention": True}, H200_MIB, latent)
    dense = latent.weight_bytes - latent.expert_bytes
    assert (grouped.weights_mib - plain.weights_mib) * (1 << 20) == pytest.approx(dense * 7 / 8, rel=0.01)


def test_recurrent_states_take_their_share_of_what_a_hybrid_models_weights_leave() -> None:
    hybrid = shape_of(HYBRID)
    told = estimate({"tp-size": 4}, H200_MIB, hybrid)
    no_states = (told.static_mib - told.weights_mib) * (1 << 20) / told.cache_bytes_per_token
    assert told.cache_tokens == pytest.approx(no_states / 1.9, rel=0.001)
    few = estimate({"tp-size": 4, "max-mamba-cache-size": 16}, H200_MIB, hybrid)
    assert told.cache_tokens < few.cache_tokens < no_states


def test_a_model_that_does_not_fit_leaves_less_than_nothing() -> None:
    assert estimate({}, 12 * 1024, shape_of(QWEN3_8B)).cache_tokens < 0

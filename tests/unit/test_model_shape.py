"""What a model weighs is read out of its config.json: published sizes are met, and nothing is guessed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pivotbench.model.shape import ModelShape, UnknownShape, read_shape, shape_of

SMOLLM2_135M = {
    "model_type": "llama",
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "vocab_size": 49152,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
}
LLAMA_31_8B = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "torch_dtype": "bfloat16",
}
QWEN3_8B = {
    "model_type": "qwen3",
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151936,
    "use_sliding_window": False,
    "torch_dtype": "bfloat16",
}
QWEN3_30B_A3B = {
    "model_type": "qwen3_moe",
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "num_hidden_layers": 48,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "vocab_size": 151936,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 768,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "torch_dtype": "bfloat16",
}
QWEN3_NEXT_80B_A3B = {
    "model_type": "qwen3_next",
    "hidden_size": 2048,
    "intermediate_size": 5120,
    "num_hidden_layers": 48,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "vocab_size": 151936,
    "full_attention_interval": 4,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_value_head_dim": 128,
    "num_experts": 512,
    "num_experts_per_tok": 10,
    "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "torch_dtype": "bfloat16",
}
# Its published config nests the language model; the founding campaign's model.
QWEN35_397B_A17B = {
    "model_type": "qwen3_5_moe",
    "text_config": {
        "model_type": "qwen3_5_moe_text",
        "hidden_size": 4096,
        "num_hidden_layers": 60,
        "num_attention_heads": 32,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "vocab_size": 248320,
        "full_attention_interval": 4,
        "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": 128,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 64,
        "linear_value_head_dim": 128,
        "num_experts": 512,
        "num_experts_per_tok": 10,
        "moe_intermediate_size": 1024,
        "shared_expert_intermediate_size": 1024,
        "dtype": "bfloat16",
    },
}
DEEPSEEK_V3 = {
    "model_type": "deepseek_v3",
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "vocab_size": 129280,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 2048,
    "moe_layer_freq": 1,
    "first_k_dense_replace": 3,
    "topk_method": "noaux_tc",
    "torch_dtype": "bfloat16",
    "quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]},
}


@pytest.mark.parametrize(
    ("config", "parameters"),
    [
        (SMOLLM2_135M, 134_515_008),
        (LLAMA_31_8B, 8_030_261_248),
        (QWEN3_8B, 8_190_735_360),
        (QWEN3_30B_A3B, 30_532_122_624),
    ],
)
def test_the_count_is_that_of_the_published_checkpoint(config: dict[str, Any], parameters: int) -> None:
    assert shape_of(config).parameters == parameters


@pytest.mark.parametrize(
    ("config", "billions", "active"),
    [
        (QWEN3_30B_A3B, 30.5, 3.3),
        (QWEN3_NEXT_80B_A3B, 80, 3),
        (DEEPSEEK_V3, 671, 37),
        (QWEN35_397B_A17B, 397, 17),
    ],
)
def test_mixtures_meet_the_sizes_they_are_named_for(
    config: dict[str, Any], billions: float, active: float
) -> None:
    shape = shape_of(config)
    assert shape.parameters / 1e9 == pytest.approx(billions, rel=0.01)
    # The makers round, and some count the embedding as active.
    assert shape.active_parameters / 1e9 == pytest.approx(active, abs=0.7)


def test_dense_weights_are_read_whole_except_the_embedding_table() -> None:
    shape = shape_of(QWEN3_8B)
    assert shape.weight_bytes == 2 * shape.parameters
    assert shape.read_bytes == shape.weight_bytes - 2 * 151936 * 4096
    assert shape_of(SMOLLM2_135M).read_bytes == 2 * 134_515_008  # tied: the table is the head
    assert shape.expert_bytes == shape_of(SMOLLM2_135M).expert_bytes == 0


def test_cache_a_token_follows_the_layers_that_keep_one() -> None:
    assert shape_of(QWEN3_8B).kv_bytes_per_token == 36 * 2 * 8 * 128 * 2
    assert shape_of(QWEN3_8B, kv_dtype="fp8_e4m3").kv_bytes_per_token == 36 * 2 * 8 * 128
    hybrid = shape_of(QWEN3_NEXT_80B_A3B)
    assert (hybrid.layers, hybrid.attention_layers) == (48, 12)
    assert hybrid.kv_bytes_per_token == 12 * 2 * 2 * 256 * 2
    assert hybrid.state_bytes_per_request == 36 * (32 * 128 * 128 * 4 + (2 * 2048 + 4096) * 3 * 2)
    latent = shape_of(DEEPSEEK_V3)
    assert (latent.kv_heads, latent.kv_bytes_per_token) == (1, 61 * (512 + 64) * 2)


def test_more_tokens_in_a_pass_read_more_experts_but_never_more_than_all() -> None:
    shape = shape_of(QWEN3_30B_A3B)
    shares = [shape.expert_share(n) for n in (1, 2, 8, 64, 4096)]
    assert shares[0] == 8 / 128
    assert shares == sorted(shares) and shares[1] < 2 * shares[0] and shares[-1] <= 1
    assert shape_of(QWEN3_8B).expert_share(64) == 0


def test_quantised_weights_are_narrower_and_what_is_left_out_is_not() -> None:
    plain, fp8 = shape_of(QWEN3_8B), shape_of(QWEN3_8B, quantization="fp8")
    linear = 36 * (192_946_432 - 8192 - 256)
    assert plain.weight_bytes - fp8.weight_bytes == linear
    assert (plain.quantization, fp8.quantization) == (None, "fp8")
    nvfp4 = {
        **QWEN3_8B,
        "quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]},
    }
    assert plain.weight_bytes - shape_of(nvfp4).weight_bytes == linear * (2 - 0.5625)
    for pattern in ("model.layers.*.self_attn*", "re:.*self_attn.*", "self_attn"):
        nvfp4["quantization_config"] = {
            "quant_method": "modelopt",
            "quant_algo": "NVFP4",
            "ignore": [pattern],
        }
        attention = 36 * 2 * (16_777_216 + 4_194_304)
        assert plain.weight_bytes - shape_of(nvfp4).weight_bytes == (linear - attention) * (2 - 0.5625)


@pytest.mark.parametrize(
    ("stored", "name", "bytes_each"),
    [
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "awq int4", 0.5 + 2.5 / 128),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, "gptq int8", 1.0),
        ({"quant_method": "mxfp4"}, "mxfp4", 0.53125),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "float", "group_size": 16}}},
            },
            "nvfp4",
            0.5625,
        ),
    ],
)
def test_known_formats_have_their_scales_counted(
    stored: dict[str, Any], name: str, bytes_each: float
) -> None:
    plain, narrow = shape_of(QWEN3_8B), shape_of({**QWEN3_8B, "quantization_config": stored})
    linear = 36 * (192_946_432 - 8192 - 256)
    assert narrow.quantization == name
    assert plain.weight_bytes - narrow.weight_bytes == pytest.approx(linear * (2 - bytes_each), abs=1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model_type": "mamba"}, "the architecture mamba is not known"),
        ({"use_sliding_window": True}, "sliding window"),
        ({"quantization_config": {"quant_method": "hqq"}}, "hqq is not known"),
        ({"torch_dtype": "int3"}, "the width of int3"),
        ({"hidden_size": None}, "lacks or misstates"),
    ],
)
def test_what_is_not_known_is_said_and_not_guessed(change: dict[str, Any], said: str) -> None:
    with pytest.raises(UnknownShape, match=said):
        shape_of({**QWEN3_8B, **change})


def test_a_folder_and_the_hubs_cache_are_read_and_a_file_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(QWEN3_8B))
    assert read_shape(str(tmp_path)) == shape_of(QWEN3_8B)
    (tmp_path / "hf_quant_config.json").write_text(json.dumps({"quantization": {"quant_algo": "FP8"}}))
    assert read_shape(str(tmp_path)).quantization == "fp8"
    (tmp_path / "model.gguf").write_text("")
    with pytest.raises(UnknownShape, match="is a file"):
        read_shape(str(tmp_path / "model.gguf"))
    snapshot = tmp_path / "hub" / "models--Qwen--Qwen3-8B" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text(json.dumps(QWEN3_8B))
    (snapshot.parents[1] / "refs").mkdir()
    (snapshot.parents[1] / "refs" / "main").write_text("abc")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    assert read_shape("Qwen/Qwen3-8B") == read_shape("Qwen/Qwen3-8B", revision="abc") == shape_of(QWEN3_8B)
    with pytest.raises(UnknownShape, match="neither a folder nor"):
        read_shape("Qwen/Qwen3-9B")


def test_a_shape_survives_json() -> None:
    shape = shape_of(DEEPSEEK_V3)
    assert ModelShape(**json.loads(json.dumps(shape.as_json()))) == shape

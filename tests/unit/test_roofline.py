"""How far the winner is from what memory bandwidth allows; null with a reason where that is not known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from campaigns import CHAT_RULES
from factory import ENVIRONMENT, Cell, Drafts, cell_files
from pivotbench.decision.levers.roofline import BANDWIDTHS, bytes_per_pass, limit
from pivotbench.engines.spelling import LLAMACPP_SPELLING, SGLANG_SPELLING
from pivotbench.evidence import CellFiles
from pivotbench.measurements import rows
from pivotbench.model.shape import shape_of
from pivotbench.model_facts import model_facts, recorded_shape
from pivotbench.summary.limit import limit_markdown, limit_sentence
from unit.test_model_shape import DEEPSEEK_V3, QWEN3_8B, QWEN3_30B_A3B

RULES = replace(CHAT_RULES, engine="sglang", gpus=1)
H200 = {**ENVIRONMENT, "engine": "sglang", "gpus": [{"name": "NVIDIA H200"}, {"name": "NVIDIA H200"}]}


def measured(
    config: dict[str, Any] | None = QWEN3_8B, environment: dict[str, Any] = H200, **more: Any
) -> CellFiles:
    """A cell at 196 tok/s, the speed that SGLang reached with this model on one H200."""
    made = {"tok_s": {("chat", 1): 196.0}, "environment": environment, **more}
    files = cell_files(Cell("backends", "fa3", 1, **made))
    assert files.launch is not None
    facts = {"shape": shape_of(config).as_json(), "why": None} if config else {}
    return replace(files, launch={**files.launch, "model": facts})


def of(cell: CellFiles, rules: Any = RULES, prompt_tokens: int | None = None) -> dict[str, Any]:
    table = [{**row, "prompt_tokens": prompt_tokens} for row in rows([cell])]
    return limit(rules, cell, table)


def test_a_dense_model_alone_is_bound_by_its_weights() -> None:
    found = of(measured())
    weights = shape_of(QWEN3_8B).read_bytes
    assert found["roofline_tok_s"] == pytest.approx(4.8e12 / weights, rel=0.01)  # a short context adds little
    assert found["share"] == pytest.approx(196 / found["roofline_tok_s"])
    assert 0.6 < found["share"] < 0.65
    assert (found["gpu"], found["gpus"], found["reason"]) == ("NVIDIA H200", 1, None)
    assert found["source"].startswith("https://www.nvidia.com/")


def test_the_cache_is_read_once_a_pass_for_every_request() -> None:
    shape = shape_of(QWEN3_8B)
    alone, many = (bytes_per_pass(shape, n, n, 1000.0, 1) for n in (1, 64))
    assert many - alone == 63 * 1000 * shape.kv_bytes_per_token
    run = of(measured(), prompt_tokens=10_000)["by_workload"][0]
    per_request = rows([measured()])[0]
    answer = per_request["output_tokens"] / per_request["requests"]
    assert run["context_tokens"] == pytest.approx(10_000 / per_request["requests"] + answer / 2)


def test_more_gpus_add_their_bandwidth_and_copy_a_cache_they_cannot_split() -> None:
    shape, latent = shape_of(QWEN3_8B), shape_of(DEEPSEEK_V3)
    assert bytes_per_pass(shape, 1, 1, 1e4, 8) == bytes_per_pass(shape, 1, 1, 1e4, 1)  # eight heads
    assert bytes_per_pass(shape, 1, 1, 1e4, 16) > bytes_per_pass(shape, 1, 1, 1e4, 8)
    grown = bytes_per_pass(latent, 1, 1, 1e4, 8) - bytes_per_pass(latent, 1, 1, 1e4, 1)
    assert grown == pytest.approx(7 * 1e4 * latent.kv_bytes_per_token)
    one, two = of(measured()), of(measured(), replace(RULES, gpus=2))
    assert two["roofline_tok_s"] == pytest.approx(2 * one["roofline_tok_s"])


def test_of_a_mixture_only_the_experts_that_are_reached_are_read() -> None:
    shape = shape_of(QWEN3_30B_A3B)
    reached = shape.expert_bytes * shape.experts_per_token / shape.experts
    alone = bytes_per_pass(shape, 1, 1, 0.0, 1)
    assert alone == pytest.approx(shape.read_bytes + reached)
    assert alone < bytes_per_pass(shape, 32, 32, 0.0, 1) < shape.weight_bytes


def test_speculation_is_held_to_the_tokens_its_passes_give() -> None:
    drafting = measured(drafts={"chat": Drafts(800, 600, counted=True)})
    found = of(drafting)
    length = found["by_workload"][0]["tokens_per_pass"]
    assert length == pytest.approx(2.5, rel=0.01)
    assert found["roofline_tok_s"] == pytest.approx(length * of(measured())["roofline_tok_s"])


@pytest.mark.parametrize(
    ("cell", "rules", "reason"),
    [
        (None, RULES, "no winner"),
        (measured(), replace(RULES, gpus=0), "on the CPU"),
        (measured(environment={**H200, "gpus": []}), RULES, "no GPU was recorded"),
        (
            measured(environment={**H200, "gpus": [{"name": "Odd"}]}),
            RULES,
            "of Odd is not in gpu_bandwidth.json",
        ),
        (measured(None), RULES, "recorded nothing of the model"),
        (measured(effective={"dp_size": 2}), RULES, "share every layer"),
        (measured(effective={"tp_size": 1}), replace(RULES, gpus=2), "share every layer"),
        (measured(), replace(RULES, metric_concurrency=9), "not measured"),
    ],
)
def test_what_is_not_known_is_null_with_a_reason(cell: Any, rules: Any, reason: str) -> None:
    found = limit(rules, cell, rows([cell] if cell else []))
    assert reason in found["reason"]
    assert found["share"] is found["roofline_tok_s"] is None


def test_a_launch_records_the_model_as_it_is_served(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(QWEN3_8B))
    facts = model_facts(
        SGLANG_SPELLING, str(tmp_path), None, {"quantization": "fp8"}, {"kv_cache_dtype": "fp8_e5m2"}
    )
    shape, why = recorded_shape({"model": json.loads(json.dumps(facts))})
    assert shape == shape_of(QWEN3_8B, quantization="fp8", kv_dtype="fp8_e5m2") and why is None
    unknown = model_facts(LLAMACPP_SPELLING, str(tmp_path / "none.gguf"), None, {}, {})
    assert unknown["shape"] is None and "neither a folder nor" in unknown["why"]
    assert recorded_shape({"model": unknown}) == (None, unknown["why"])
    other: dict[str, Any] = {"shape": {"layers": 1}, "why": None}
    assert recorded_shape({"model": other})[1] == "its launch recorded the model in another form"


def test_a_reader_is_told_how_far_it_is_or_why_that_is_not_known() -> None:
    known = of(measured())
    assert limit_sentence(known) == ("fa3 reaches 62 % of what the memory of NVIDIA H200 allows, 317 tok/s")
    assert "| chat | 196.0 | " in limit_markdown(known) and known["source"] in limit_markdown(known)
    unknown = limit(RULES, None, [])
    assert limit_markdown(unknown).endswith("is not known: there is no winner that was measured.\n")


def test_every_bandwidth_has_a_source_of_its_maker() -> None:
    table = json.loads(BANDWIDTHS.read_text())
    assert len({entry["name"] for entry in table}) == len(table)
    hosts = ("https://www.nvidia.com/", "https://developer.nvidia.com/", "https://images.nvidia.com/")
    assert all(entry["source"].startswith(hosts) and 100 < entry["gb_s"] < 20_000 for entry in table)

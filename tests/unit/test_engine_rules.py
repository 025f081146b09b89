"""What is known of SGLang's flags beforehand: a rule has a source, names real flags, and is seen to hold."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from sglang_catalogues import VERSIONS, catalogue

from pivotbench.engines.findings import Facts, Finding, findings
from pivotbench.engines.rules import Outcome, Rule, canonical, rules_of

ALIASES, RULES = rules_of("sglang")
CATALOGUES = [catalogue(version) for version in VERSIONS]
DERIVED = {"attention.prefill", "attention.decode", "gpus.needed", "model", "weights", "concurrency"}
# How many GPUs, of which kind: SM90, SM100, SM120.
H200, B200, RTX_PRO_6000 = (9,), (10,), (12,)


def found(flags: dict[str, Any], version: str | None = "0.5.16", **more: Any) -> dict[str, Finding]:
    facts = Facts(flags, version=version, **more)
    return {finding.id: finding for finding in findings("sglang", facts)}


def drafting(algorithm: str, steps: int = 3, topk: int = 1, tokens: int = 4) -> dict[str, Any]:
    return {
        "speculative-algorithm": algorithm,
        "speculative-num-steps": steps,
        "speculative-eagle-topk": topk,
        "speculative-num-draft-tokens": tokens,
    }


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_names_flags_that_exist_and_where_it_was_read(rule: Rule) -> None:
    named = {key for case in rule.when for key in case.tests} - DERIVED
    for name in named:
        assert any(c.find(name) for c in CATALOGUES), f"no version read has --{name}"
    assert rule.source and rule.says and rule.outcome in get_args(Outcome)
    assert all(link.startswith("https://github.com/") for link in rule.links)
    assert rule.seen_in or rule.gone_in
    assert not rule.says.strip().endswith(";")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_value_that_a_rule_names_is_one_that_the_engine_takes(rule: Rule) -> None:
    for case in rule.when:
        for key, test in case.tests.items():
            values = test if isinstance(test, list) else test.get("not", []) if isinstance(test, dict) else []
            specs = [spec for c in CATALOGUES if (spec := c.find(key)) and spec.choices]
            for value in values if specs else ():
                assert any(str(value) in (spec.choices or ()) for spec in specs), f"--{key} {value}"


def test_every_rule_has_a_name_of_its_own() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES)


def test_every_alias_is_one_of_the_engine() -> None:
    """Deprecated names are flags of their own to SGLang and one setting to us."""
    for alias, name in ALIASES.items():
        specs = [spec for c in CATALOGUES if (spec := c.find(alias))]
        assert specs, alias
        assert all(spec.name == name or spec.name == alias for spec in specs)


def test_spellings_are_one_flag() -> None:
    assert canonical("sglang", {"tensor-parallel-size": 2, "ep": 2}) == {"tp-size": 2, "ep-size": 2}
    assert canonical("sglang", {"disable-radix-cache": False}) == {}


def test_an_engine_without_rules_has_no_findings() -> None:
    assert findings("llamacpp", Facts({"flash-attn": "on"})) == []


# Speculation


@pytest.mark.parametrize(
    "flags",
    [
        {},
        drafting("NEXTN"),
        drafting("EAGLE", 5, 4, 8) | {"speculative-draft-model-path": "d"},
        drafting("EAGLE3") | {"speculative-draft-model-path": "d"},
        drafting("STANDALONE") | {"speculative-draft-model-path": "d"},
        {"speculative-algorithm": "NEXTN"},
        {"speculative-algorithm": "NGRAM"},
        {"speculative-algorithm": "NGRAM", "speculative-num-draft-tokens": 12},
        {"speculative-algorithm": "DFLASH", "speculative-draft-model-path": "d"},
        {"speculative-algorithm": "DSPARK", "speculative-draft-model-path": "d"},
        drafting("NEXTN") | {"enable-dp-attention": True, "dp-size": 8, "tp-size": 8},
    ],
)
def test_sets_of_flags_that_go_together_are_let_pass(flags: dict[str, Any]) -> None:
    assert found(flags) == {}


@pytest.mark.parametrize(
    ("flags", "rule"),
    [
        ({"speculative-algorithm": "EAGLE", "speculative-num-draft-tokens": 4}, "steps-missing"),
        ({"speculative-algorithm": "NEXTN", "speculative-num-steps": 3}, "topk-missing"),
        ({"speculative-algorithm": "ngram", "enable-dp-attention": True, "dp-size": 2}, "dp-attention"),
        (drafting("STANDALONE") | {"enable-dp-attention": True, "dp-size": 2}, "dp-attention"),
        ({"speculative-algorithm": "NGRAM", "pipeline-parallel-size": 2}, "pipeline"),
        ({"speculative-algorithm": "DFLASH"}, "draft-model-missing"),
        (drafting("EAGLE3", topk=4) | {"attention-backend": "trtllm_mha"}, "trtllm-mha-topk"),
        (drafting("EAGLE", topk=4) | {"page-size": 64, "attention-backend": "fa4"}, "tree-pages"),
        ({"speculative-algorithm": "NGRAM", "page-size": 64, "attention-backend": "fa3"}, "ngram-pages"),
        ({"speculative-algorithm": "NGRAM", "attention-backend": "flex_attention"}, "flex-attention"),
        (
            drafting("STANDALONE") | {"speculative-use-rejection-sampling": True},
            "rejection-sampling-algorithm",
        ),
        (
            {
                "speculative-algorithm": "DSPARK",
                "speculative-dspark-block-size": 4,
                "speculative-num-draft-tokens": 4,
            },
            "block-size-plus-one",
        ),
    ],
)
def test_what_the_engine_refuses_is_known_for_certain(flags: dict[str, Any], rule: str) -> None:
    finding = found(flags)[rule]
    assert (finding.outcome, finding.certain) == ("refused", True)
    assert set(finding.flags) <= set(flags)
    assert finding.flags


def test_of_a_version_whose_source_was_not_read_nothing_is_certain() -> None:
    flags = {"speculative-algorithm": "NGRAM", "enable-dp-attention": True, "dp-size": 2}
    assert found(flags, version="0.5.20")["dp-attention"].certain, "it was read before and after"
    for version in ("0.4.10", "0.6.0", None):
        assert not found(flags, version=version)["dp-attention"].certain


def test_a_rule_that_is_gone_is_not_held_against_later_versions() -> None:
    flags = drafting("NEXTN") | {"mamba-radix-cache-strategy": "extra_buffer_lazy"}
    hybrid = frozenset({"hybrid"})
    assert "hybrid-lazy-buffer" in found(flags, "0.5.16", model=hybrid)
    assert "hybrid-lazy-buffer" not in found(flags, "0.5.23", model=hybrid)
    assert "hybrid-lazy-buffer" not in found(flags, None, model=hybrid)


def test_a_hybrid_model_speculates_with_the_radix_cache_only_with_the_right_strategy() -> None:
    hybrid = frozenset({"hybrid", "moe"})
    flags = drafting("NEXTN")
    assert found(flags, "0.5.16", model=hybrid) == {}, "SGLang chooses rightly by itself"
    assert "hybrid-radix-cache" in found(flags, "0.5.9", model=hybrid)
    assert "hybrid-radix-cache" not in found(flags | {"disable-radix-cache": True}, "0.5.9", model=hybrid)
    old = flags | {"mamba-scheduler-strategy": "extra_buffer"}
    assert "hybrid-radix-cache" not in found(old, "0.5.9", model=hybrid)
    buffered = {"mamba-radix-cache-strategy": "no_buffer"}
    assert found(buffered, model=hybrid)["hybrid-no-buffer-overlap"].certain
    assert found(buffered | {"disable-overlap-schedule": True}, model=hybrid) == {}
    assert found(buffered, model=frozenset({"moe"})) == {}


def test_what_is_silently_set_otherwise_is_told() -> None:
    assert found(drafting("EAGLE", 3, 1, 8))["draft-tokens-adjusted"].outcome == "changed"
    assert "draft-tokens-adjusted" not in found(drafting("EAGLE", 3, 4, 8))
    assert "block-drafts-once" in found(drafting("DFLASH") | {"speculative-draft-model-path": "d"})
    assert "mixed-chunk-off" in found(drafting("NEXTN") | {"enable-mixed-chunk": True})


def test_a_load_above_what_speculation_admits_is_told() -> None:
    assert "admits-fewer" in found(drafting("NEXTN"), concurrency=64)
    assert "admits-fewer" not in found(drafting("NEXTN"), concurrency=48)
    assert "admits-fewer" not in found(drafting("NEXTN") | {"max-running-requests": 64}, concurrency=64)


def test_a_draft_model_that_is_missing_is_doubted_where_the_engine_would_go_on() -> None:
    for algorithm in ("EAGLE3", "STANDALONE"):
        assert found(drafting(algorithm))["drafts-for-itself"].outcome == "doubtful"
    assert "no-heads-of-its-own" in found(drafting("NEXTN"), model=frozenset({"no-mtp"}))


# Backends on GPUs


@pytest.mark.parametrize(
    ("flags", "gpu", "rule", "outcome"),
    [
        ({"attention-backend": "fa3"}, RTX_PRO_6000, "fa3", "fails"),
        ({"attention-backend": "fa3"}, B200, "fa3", "fails"),
        ({"prefill-attention-backend": "fa3", "attention-backend": "triton"}, B200, "fa3", "fails"),
        ({"attention-backend": "trtllm_mha"}, H200, "trtllm-mha-prefill", "fails"),
        ({"attention-backend": "cutedsl_mla"}, RTX_PRO_6000, "cutedsl-mla", "fails"),
        ({"attention-backend": "trtllm_mla"}, RTX_PRO_6000, "trtllm-mla-sm120", "fails"),
        ({"moe-runner-backend": "flashinfer_trtllm"}, RTX_PRO_6000, "moe-trtllm", "fails"),
        ({"moe-runner-backend": "flashinfer_trtllm"}, H200, "moe-trtllm", "fails"),
        ({"fp4-gemm-backend": "flashinfer_trtllm"}, RTX_PRO_6000, "fp4-trtllm", "fails"),
        ({"fp4-gemm-backend": "flashinfer_cutedsl"}, RTX_PRO_6000, "fp4-cutedsl", "fails"),
        ({"fp4-gemm-backend": "flashinfer_cutlass"}, H200, "fp4-before-blackwell", "fails"),
        ({"moe-runner-backend": "flashinfer_cutedsl"}, RTX_PRO_6000, "moe-cutedsl", "garbage"),
        ({"moe-runner-backend": "deep_gemm"}, RTX_PRO_6000, "moe-deep-gemm", "fails"),
        ({"fp8-gemm-backend": "cutlass"}, H200, "fp8-cutlass", "fails"),
        ({"kv-cache-dtype": "nvfp4"}, H200, "cache-nvfp4", "fails"),
    ],
)
def test_a_backend_that_the_gpu_has_no_kernels_for_is_expected_to_fail(
    flags: dict[str, Any], gpu: tuple[int, ...], rule: str, outcome: str
) -> None:
    assert found(flags, capabilities=gpu)[rule].outcome == outcome
    assert rule not in found(flags), "without a GPU there is nothing to say"


@pytest.mark.parametrize(
    ("flags", "gpu"),
    [
        ({"attention-backend": "fa3"}, H200),
        ({"attention-backend": "triton"}, RTX_PRO_6000),
        ({"moe-runner-backend": "flashinfer_trtllm", "fp4-gemm-backend": "flashinfer_trtllm"}, B200),
        ({"moe-runner-backend": "flashinfer_cutlass", "fp4-gemm-backend": "flashinfer_cudnn"}, RTX_PRO_6000),
        ({"moe-runner-backend": "marlin", "fp4-gemm-backend": "marlin"}, RTX_PRO_6000),
        ({"moe-runner-backend": "deep_gemm", "fp8-gemm-backend": "triton"}, H200),
    ],
)
def test_a_backend_that_runs_there_is_let_pass(flags: dict[str, Any], gpu: tuple[int, ...]) -> None:
    assert found(flags, capabilities=gpu) == {}


def test_a_version_that_brought_a_kernel_is_not_warned_of() -> None:
    flags = {"attention-backend": "trtllm_mha"}
    assert "trtllm-mha-prefill" in found(flags, "0.5.16", capabilities=H200)
    assert found(flags, "0.5.23", capabilities=H200) == {}


def test_hybrid_models_take_other_attention_backends_on_blackwell() -> None:
    hybrid = frozenset({"hybrid"})
    assert "hybrid-attention-sm100" in found(
        {"attention-backend": "flashinfer"}, capabilities=B200, model=hybrid
    )
    assert found({"attention-backend": "flashinfer"}, capabilities=RTX_PRO_6000, model=hybrid) == {}


def test_gpus_are_counted_as_the_engine_takes_them() -> None:
    assert found({"tp-size": 8}, gpus=4)["too-few-gpus"].certain
    assert "too-few-gpus" in found({"tp-size": 4, "dp-size": 2}, gpus=4)
    assert found({"tp-size": 8, "dp-size": 8, "enable-dp-attention": True}, gpus=8) == {}
    assert found({"tp-size": 2}, gpus=4)["idle-gpus"].outcome == "doubtful"
    assert found({}, gpus=1) == {} == found({}, gpus=0)


def test_a_rule_that_speaks_of_a_division_sees_it() -> None:
    grouped = {"enable-dp-attention": True, "dp-size": 3}
    assert "dp-attention-divides" in found(grouped | {"tp-size": 8})
    assert "dp-attention-divides" not in found(grouped | {"tp-size": 6})
    assert "moe-flashinfer-ep" in found(
        {"moe-runner-backend": "flashinfer_cutlass", "ep-size": 2, "tp-size": 8}
    )
    assert "moe-flashinfer-ep" not in found(
        {"moe-runner-backend": "flashinfer_cutlass", "ep-size": 8, "tp-size": 8}
    )

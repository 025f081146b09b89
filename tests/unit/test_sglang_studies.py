"""The ready-made studies: what they ask exists in the engine, goes together, and fits where it should."""

from __future__ import annotations

from pathlib import Path

import pytest
from sglang_catalogues import VERSIONS, catalogue
from test_model_shape import DEEPSEEK_V3, QWEN35_397B_A17B

from pivotbench.cells import flags_of
from pivotbench.engines import get_engine
from pivotbench.engines.findings import Facts, findings
from pivotbench.engines.sglang_memory import estimate
from pivotbench.model.shape import shape_of
from pivotbench.preflight import model_kinds
from pivotbench.study import Study, check_conflicts, check_flags, load_study

ROOT = Path(__file__).parents[2]
STUDIES = sorted((ROOT / "config" / "studies").glob("*.yaml"))
CAMPAIGNS = sorted((ROOT / "docs" / "campaigns").glob("*/study.yaml"))
FOUNDING = load_study(ROOT / "config/studies/founding-campaign.yaml")
DEEPSEEK = load_study(ROOT / "config/studies/deepseek-ep-dp.yaml")
NVFP4 = {"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}}
FOUNDING_SHAPE = shape_of(QWEN35_397B_A17B | NVFP4)
RTX_PRO_6000_MIB = 96 * 1024
H200_MIB = 143_771


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("file", STUDIES, ids=lambda file: file.stem)
def test_a_study_is_valid_for_the_engine_without_it_or_the_model_being_here(file: Path, version: str) -> None:
    study, flags = load_study(file), catalogue(version)
    check_flags(study, {None: flags}, get_engine("sglang").reserved_flags)
    assert check_conflicts(study, {None: flags}) == []


@pytest.mark.parametrize("file", CAMPAIGNS, ids=lambda file: file.parent.name)
def test_a_recorded_campaigns_flags_are_those_of_the_version_it_ran(file: Path) -> None:
    study, flags = load_study(file), catalogue("0.5.16")
    check_flags(study, {None: flags}, get_engine("sglang").reserved_flags)
    check_conflicts(study, {None: flags})


@pytest.mark.parametrize("file", STUDIES, ids=lambda file: file.stem)
def test_a_study_opens_with_what_it_settles(file: Path) -> None:
    head = file.read_text(encoding="utf-8").split("\nname: ")[0].splitlines()[1:]
    assert len(head) >= 2
    assert all(line.startswith("# ") for line in head)


def expected(study: Study, name: str, capability: int) -> set[str]:
    facts = Facts(
        flags_of(study, "backends", name),
        gpus=study.hosts.gpus,
        version="0.5.16",
        model=model_kinds(FOUNDING_SHAPE),
        weights="nvfp4",
        capabilities=(capability,),
    )
    return {finding.id for finding in findings("sglang", facts)}


def test_the_founding_campaign_varies_each_side_alone_against_the_pair_known_to_work() -> None:
    sides = [
        (flags["moe-runner-backend"], flags["fp4-gemm-backend"]) for flags in FOUNDING.configurations.values()
    ]
    dense = {d for moe, d in sides if moe == "flashinfer_cutlass"}
    assert dense == {
        "flashinfer_cudnn",
        "flashinfer_cutlass",
        "flashinfer_trtllm",
        "flashinfer_cutedsl",
        "marlin",
    }
    moe = {m for m, d in sides if d == "flashinfer_cudnn"}
    assert moe == {"flashinfer_cutlass", "flashinfer_trtllm", "flashinfer_cutedsl", "marlin"}
    assert FOUNDING.decision.reference == "cutlass-cudnn"


def test_the_founding_campaign_is_told_beforehand_what_its_people_found_by_crashes() -> None:
    assert expected(FOUNDING, "trtllm-cudnn", 12) == {"moe-trtllm"}
    assert expected(FOUNDING, "cutlass-trtllm", 12) == {"fp4-trtllm"}
    assert expected(FOUNDING, "cutedsl-cudnn", 12) == {"moe-cutedsl"}
    assert expected(FOUNDING, "cutlass-cutedsl", 12) == {"fp4-cutedsl"}
    for name in ("cutlass-cudnn", "cutlass-cutlass", "cutlass-marlin", "marlin-cudnn", "marlin-marlin"):
        assert expected(FOUNDING, name, 12) == set(), name
    assert FOUNDING.preflight == "warn", "what is expected to crash is tried all the same"


def test_the_founding_campaign_drafts_one_to_four_steps_on_text_and_on_random_tokens() -> None:
    steps = [flags["speculative-num-steps"] for flags in FOUNDING.speculations.values()]
    assert steps == [1, 2, 3, 4]
    kinds = {workload.kind for workload in FOUNDING.throughput.workloads.values()}
    assert kinds == {"text", "synthetic"}
    decides = {FOUNDING.throughput.workloads[name].kind for name in FOUNDING.decision.metric.workloads}
    assert decides == {"text"}


def test_the_founding_model_and_its_draft_leave_half_of_each_gpu_to_the_cache() -> None:
    base = "cutlass-cudnn+nextn-4"
    told = estimate(flags_of(FOUNDING, "speculative", base), RTX_PRO_6000_MIB, FOUNDING_SHAPE)
    assert told.weights_mib + (told.draft_weights_mib or 0) < told.static_mib / 2
    assert told.cache_tokens > 1_000_000


@pytest.mark.parametrize("name", DEEPSEEK.configurations)
def test_a_deepseek_model_fits_on_eight_h200_however_it_is_divided(name: str) -> None:
    told = estimate(flags_of(DEEPSEEK, "backends", name), H200_MIB, shape_of(DEEPSEEK_V3))
    assert told.cache_tokens > 100_000
    drafted = flags_of(DEEPSEEK, "speculative", f"{name}+nextn-3")
    assert estimate(drafted, H200_MIB, shape_of(DEEPSEEK_V3)).cache_tokens > 100_000


def test_a_baseline_admits_as_many_requests_as_its_speculation() -> None:
    """SGLang would let 48 run at once with drafts and thousands without: such a comparison is of queues."""
    for file in STUDIES:
        study = load_study(file)
        most = max(n for w in study.throughput.workloads.values() for n in w.concurrency or ())
        assert most <= 48 or int(str(study.serve["max-running-requests"])) >= most, file.stem

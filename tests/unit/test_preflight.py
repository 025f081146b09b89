"""Before a launch it is said what is expected of it; that hides nothing unless the study asks."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from test_model_shape import DEEPSEEK_V3, QWEN3_8B, QWEN3_NEXT_80B_A3B

from factory import Cell, stage_files
from pivotbench.engines.rules import rules_of
from pivotbench.installations import Installation
from pivotbench.preflight import Preflight, known_kinds, preflight
from pivotbench.report.outcomes import outcomes
from pivotbench.stages import launch as stage
from pivotbench.stages import teardown as last_stage
from pivotbench.staleness import Judge

H200 = {"memory_mib": 143_771, "compute": "9.0", "name": "H200"}
RTX_4090 = {"memory_mib": 24_564, "compute": "8.9", "name": "RTX 4090"}
SMALL = {"memory_mib": 12_288, "compute": "8.9", "name": "small"}


def model(folder: Path, config: dict[str, Any] = QWEN3_8B, name: str = "model") -> str:
    path = folder / name
    path.mkdir()
    (path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return str(path)


def expected(
    path: str, gpus: list[dict[str, Any]], engine: str = "sglang", count: int = 1, **flags: Any
) -> Preflight:
    named = {name.replace("_", "-"): value for name, value in flags.items()}
    return preflight({"engine": engine, "flags": named, "gpus": count}, path, "0.5.16", gpus)


def ids(told: Preflight) -> list[str]:
    return [finding.id for finding in told.findings]


def test_a_model_that_fits_has_no_finding_and_its_size_is_told(tmp_path: Path) -> None:
    told = expected(model(tmp_path), [H200], attention_backend="fa3")
    assert told.findings == ()
    assert told.memory is not None
    assert 15_000 < told.memory.weights_mib < 16_000
    assert told.refusal() is None


def test_weights_beyond_the_gpu_are_expected_to_fail_with_what_to_do(tmp_path: Path) -> None:
    (finding,) = expected(model(tmp_path), [SMALL]).findings
    assert (finding.id, finding.outcome) == ("weights-exceed-memory", "fails")
    assert "12,288" in finding.message
    assert "tp-size" in finding.message


def test_a_share_too_small_for_the_weights_leaves_no_cache(tmp_path: Path) -> None:
    (finding,) = expected(model(tmp_path), [RTX_4090], mem_fraction_static=0.5).findings
    assert (finding.id, finding.flags) == ("no-room-for-cache", ("mem-fraction-static",))


def test_the_draft_model_is_counted(tmp_path: Path) -> None:
    path, draft = model(tmp_path), model(tmp_path, name="draft")
    drafting = {"speculative_algorithm": "STANDALONE", "speculative_draft_model_path": draft}
    assert ids(expected(path, [RTX_4090])) == []
    (finding,) = expected(path, [RTX_4090], **drafting).findings
    assert finding.id == "weights-exceed-memory"
    assert "of them the draft's" in finding.message


def test_more_gpus_make_it_fit(tmp_path: Path) -> None:
    assert ids(expected(model(tmp_path), [SMALL, SMALL], count=2, tp_size=2)) == []


def test_a_cache_smaller_than_one_request_is_doubted(tmp_path: Path) -> None:
    assert ids(expected(model(tmp_path), [RTX_4090], context_length=131_072)) == ["cache-below-context"]


def test_backends_are_held_against_the_gpu(tmp_path: Path) -> None:
    path = model(tmp_path)
    assert ids(expected(path, [H200], moe_runner_backend="flashinfer_trtllm")) == ["moe-trtllm"]


def test_without_a_gpu_flags_alone_are_looked_at(tmp_path: Path) -> None:
    told = expected(model(tmp_path), [], moe_runner_backend="flashinfer_trtllm", fp8_gemm_backend="cutlass")
    assert (told.findings, told.memory) == ((), None)
    assert ids(expected(model(tmp_path, name="other"), [], speculative_algorithm="DFLASH")) == [
        "draft-model-missing"
    ]


def test_a_model_that_is_not_here_leaves_the_size_unknown_and_says_why(tmp_path: Path) -> None:
    told = expected(str(tmp_path / "nowhere"), [SMALL], attention_backend="flashinfer")
    assert told.memory is None
    assert told.findings == ()
    assert told.unknown and "nowhere" in told.unknown


def test_an_engine_without_rules_is_not_judged(tmp_path: Path) -> None:
    assert expected(model(tmp_path), [SMALL], engine="llamacpp") == Preflight(())


def test_draft_and_target_must_share_a_vocabulary(tmp_path: Path) -> None:
    path, draft = model(tmp_path), model(tmp_path, QWEN3_8B | {"vocab_size": 32_000}, "draft")
    drafting = {"speculative_algorithm": "STANDALONE", "speculative_draft_model_path": draft}
    assert ids(expected(path, [H200], **drafting)) == ["vocabularies-differ"]
    assert ids(expected(path, [H200], **drafting | {"speculative_draft_model_path": path})) == []


def test_experts_are_not_cut_through_the_blocks_of_their_scales(tmp_path: Path) -> None:
    path = model(tmp_path, DEEPSEEK_V3 | {"moe_intermediate_size": 1536})
    eight = [H200] * 8
    assert ids(expected(path, eight, count=8, tp_size=8)) == ["expert-blocks"]
    assert ids(expected(path, eight, count=8, tp_size=8, ep_size=8)) == []
    assert ids(expected(path, eight, count=8, tp_size=8, ep_size=8, moe_a2a_backend="deepep")) == []


def test_the_kind_of_a_model_is_told_where_its_config_lies_here(tmp_path: Path) -> None:
    assert known_kinds(model(tmp_path, QWEN3_NEXT_80B_A3B)) == {"hybrid", "moe", "not-latent"}
    assert known_kinds(model(tmp_path, DEEPSEEK_V3, "latent")) == {"moe", "latent"}
    assert known_kinds(model(tmp_path, name="dense")) == {"not-latent", "no-mtp"}
    assert known_kinds("org/not-downloaded") == frozenset()


NAMES = sorted({key for rule in rules_of("sglang")[1] for case in rule.when for key in case.tests})
VALUES = st.one_of(
    st.text(max_size=8),
    st.integers(-1, 1 << 40),
    st.floats(),
    st.booleans(),
    st.lists(st.one_of(st.integers(), st.text(max_size=4)), max_size=3),
)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(flags=st.dictionaries(st.sampled_from([*NAMES, "mem-fraction-static", "context-length"]), VALUES))
@example(flags={"attention-backend": "", "pp-size": 294912.0})
@example(flags={"tp-size": 1.4e306})
@example(flags={"tp-size": 1e15, "pp-size": 1e15, "chunked-prefill-size": 1e15})
def test_no_value_of_a_flag_keeps_a_server_from_being_tried(tmp_path: Path, flags: dict[str, Any]) -> None:
    path = tmp_path / "model"
    if not path.exists():
        model(tmp_path)
    preflight({"engine": "sglang", "flags": flags, "gpus": 1}, str(path), "0.5.16", [H200]).as_json()


# In the launch stage


class Started(Exception):
    """The stage went on to start a server."""


def launched(monkeypatch: pytest.MonkeyPatch, path: str, asked: str | None, **flags: Any) -> dict[str, Any]:
    """Run the launch stage up to the server; return what it said and wrote."""
    done: dict[str, Any] = {"said": []}

    def start() -> None:
        done["started"] = True
        raise Started

    monkeypatch.setattr(stage, "stop", lambda **_: None)
    monkeypatch.setattr(stage, "describe", lambda *_, **__: {"engine_version": "0.5.16", "gpus": [SMALL]})
    context = SimpleNamespace(
        key="k",
        owner="o",
        request={"engine": "sglang", "flags": flags, "gpus": 1, "env": {}},
        installation=Installation("/usr/bin/python3"),
        host={"python": "/usr/bin/python3", "model": path} | ({"preflight": asked} if asked else {}),
        say=done["said"].append,
        progress=done["said"].append,
        ensure=start,
        write=lambda status, **body: done.update(status=status, **body),
    )
    with contextlib.suppress(Started):
        stage.launch(context)  # type: ignore[arg-type]
    return done


@pytest.mark.parametrize("asked", ["warn", None])
def test_what_is_expected_to_fail_is_said_and_launched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str | None
) -> None:
    done = launched(monkeypatch, model(tmp_path), asked)
    assert done["started"]
    assert done["said"][0].startswith("preflight: fails: the weights take")


def test_a_study_may_refuse_to_launch_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = launched(monkeypatch, model(tmp_path), "refuse")
    assert "started" not in done
    assert done["status"] == "failed"
    assert (done["reason"].code, done["reason"].kind) == ("preflight_refused", "deterministic")
    assert done["reason"].message.startswith("not launched, as the study asks: the weights take")
    assert done["preflight"]["findings"][0]["id"] == "weights-exceed-memory"
    json.dumps(done["preflight"])


def test_a_doubt_is_no_reason_to_refuse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = QWEN3_8B | {"num_hidden_layers": 4}
    done = launched(monkeypatch, model(tmp_path, small), "refuse", **{"context-length": 1_000_000})
    assert done["started"]
    assert "preflight: doubtful" in done["said"][0]


def test_of_a_server_that_was_never_launched_there_is_nothing_to_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(last_stage, "stop", lambda **_: None)
    skipped: list[str] = []
    refused = {"server": None, "reason": {"code": "preflight_refused", "kind": "deterministic"}}
    context = SimpleNamespace(
        key="k", owner="o", read=lambda _: refused, skip_after=lambda earlier, _: skipped.append(earlier)
    )
    last_stage.teardown(context)  # type: ignore[arg-type]
    assert skipped == ["launch"]


def test_a_refused_launch_is_tried_once_the_study_no_longer_refuses(tmp_path: Path) -> None:
    path = tmp_path / "launch.json"
    refused = {"code": "preflight_refused", "kind": "deterministic", "message": ""}
    content = stage_files("sim", Cell("backends", "a", 1))["launch"] | {"status": "failed", "reason": refused}
    path.write_text(json.dumps(content))
    assert "no longer refuses" in str(Judge(None, gpus=1).refused_before(path))
    path.write_text(json.dumps(content | {"reason": None, "status": "ok"}))
    assert Judge(None, gpus=1).refused_before(path) is None
    assert Judge(None, gpus=1).refused_before(tmp_path / "missing.json") is None


# In the report


@pytest.mark.parametrize(("status", "proven"), [("ok", " It launched all the same."), ("failed", "")])
def test_the_report_sets_what_was_expected_beside_what_came(status: str, proven: str) -> None:
    finding = {"id": "fa3", "outcome": "fails", "message": "FlashAttention 3 runs elsewhere."}
    reason = {"code": "unsupported_arch", "kind": "deterministic", "message": "no kernel"}
    launch = {
        "status": status,
        "reason": None if status == "ok" else reason,
        "ready_seconds": 1.0,
        "preflight": {"findings": [finding]},
    }
    stages = {"launch": launch, "smoke": None, "throughput": None, "teardown": None}
    cell = SimpleNamespace(
        phase="backends", configuration="fa3", round=1, failure=None, stage=stages.get, **stages
    )
    decision: dict[str, Any] = {"ranking": [], "comparisons": [], "eliminated": [], "classes": []}
    (row,) = outcomes(decision, [cell])["backends"]  # type: ignore[list-item]
    assert row.expected == (f"It would fail to launch: FlashAttention 3 runs elsewhere.{proven}",)

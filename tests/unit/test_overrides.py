"""Requested against effective: every silent change is told, with who says so."""

from __future__ import annotations

import json
from typing import Any

import pytest

import scripted
from pivotbench.engines.base import Change
from pivotbench.engines.catalogue import FlagCatalogue, FlagSpec
from pivotbench.engines.sglang import SGLANG, effective
from pivotbench.stages.overrides import deprecations, overrides

CATALOGUE = FlagCatalogue(
    "sglang",
    "0.5.16",
    (
        FlagSpec("speculative-algorithm", aliases=("speculative-algo",), setting="speculative_algorithm"),
        FlagSpec(
            "cuda-graph-max-bs", setting="cuda_graph_max_bs_decode", deprecated="--cuda-graph-max-bs-decode"
        ),
        FlagSpec(
            "monokernel-backend", setting="enable_amd_monokernel", stores=True, deprecated="--enable-it"
        ),
        FlagSpec("page-size", setting="page_size"),
    ),
)


def real(name: str, requested: dict[str, Any]) -> list[dict[str, Any]]:
    """The overrides of a launch that was recorded on an H200."""
    flags = effective(json.loads((scripted.LOGS / f"{name}.info.json").read_text(encoding="utf-8")))
    log = (scripted.LOGS / f"{name}.log").read_text(encoding="utf-8").splitlines()
    return overrides(requested, flags, SGLANG.changes(flags, log), CATALOGUE)


def row(rows: list[dict[str, Any]], flag: str | None, words: str = "") -> dict[str, Any]:
    (found,) = [r for r in rows if r["flag"] == flag and words in str(r["effective"])]
    return found


def test_a_draft_models_changes_are_told_apart_from_the_targets() -> None:
    rows = real("nano-standalone", {"speculative-algo": "STANDALONE", "cuda-graph-max-bs": 8})
    context = row(rows, "context-length")
    assert (context["requested"], context["effective"], context["model"]) == (None, 1024, "draft")
    assert context["source"] == "server_info _runtime_mutations: spec_worker.match_target_context_length"
    batch = row(rows, "pp-max-micro-batch-size")
    assert (batch["effective"], batch["model"], batch["ranks"]) == (48, "target", [])
    moe = row(rows, None, "SPECULATIVE_MOE_RUNNER_BACKEND is not initialized")
    assert (moe["model"], moe["source"]) == ("draft", "log")
    assert not [r for r in rows if r["requested"] is not None], "what was asked for is in effect"


def test_a_change_that_only_the_log_tells_of_is_told_in_its_words() -> None:
    limit = row(real("nano-standalone", {}), None, "Max running requests is reset to 48")
    assert (limit["requested"], limit["source"], limit["model"]) == (None, "log", "target")


def test_a_requested_flag_names_who_changed_it() -> None:
    rows = real("8b-fp8", {"page-size": 64, "disable-chunked-prefix-cache": False})
    page = row(rows, "page-size")
    assert (page["requested"], page["effective"]) == (64, 1)
    assert page["source"] == "server_info _resolved_overrides: _page_size_default"
    gate = row(rows, "disable-chunked-prefix-cache")
    assert (gate["effective"], gate["source"]) == (
        True,
        "server_info _runtime_mutations: model_runner.chunked_prefix_cache_gate",
    )


def test_another_spelling_or_a_retired_one_is_held_against_the_setting_it_stands_for() -> None:
    rows = real("nano-standalone", {"speculative-algo": "EAGLE", "cuda-graph-max-bs": 16})
    assert row(rows, "speculative-algo")["effective"] == "STANDALONE"
    assert row(rows, "cuda-graph-max-bs")["effective"] == 8


def test_a_retired_flag_that_stands_for_a_switch_is_no_override() -> None:
    asked = {"monokernel-backend": "amd"}
    assert overrides(asked, {"enable-amd-monokernel": True}, (), CATALOGUE) == []
    assert len(overrides(asked, {"enable-amd-monokernel": False}, (), CATALOGUE)) == 1


def test_deprecated_flags_are_listed_with_their_successors() -> None:
    asked = {"cuda-graph-max-bs": 8, "page-size": 1, "unheard-of": 1}
    assert deprecations(asked, CATALOGUE) == [
        {"flag": "cuda-graph-max-bs", "use": "--cuda-graph-max-bs-decode"}
    ]
    assert deprecations(asked, None) == []


def test_what_ranks_did_differently_is_told_of_each() -> None:
    states = [
        {"page_size": 1, "_runtime_mutations": [["gate", {"page_size": 1}], ["alike", {"chunk": 8}]]},
        {"page_size": 64, "_runtime_mutations": [["gate", {"page_size": 64}], ["alike", {"chunk": 8}]]},
    ]
    flags = effective({"page_size": 1, "chunk": 4, "internal_states": states})
    rows = overrides({"page-size": 1}, flags, SGLANG.changes(flags, []), CATALOGUE)
    page = row(rows, "page-size")
    assert (page["requested"], page["effective"], page["ranks"]) == (1, 64, [1])
    assert row(rows, "chunk")["ranks"] == []
    assert SGLANG.rank_differences(flags) == {"page_size": [1, 64]}


def test_of_several_changes_to_one_setting_the_last_counts() -> None:
    state = {"_resolved_overrides": [["first", {"a": 1}]], "_runtime_mutations": [["then", {"a": 2}]]}
    (change,) = SGLANG.changes({"internal_states": [state]}, [])
    assert (change.effective, change.source) == (2, "server_info _runtime_mutations: then")


@pytest.mark.parametrize("value", ["auto", "AUTO"])
def test_what_the_engine_chose_where_it_was_told_to_choose_was_not_asked_for(value: str) -> None:
    (found,) = overrides({"page-size": value}, {"page-size": 1}, [Change("page-size", 1, "log")], CATALOGUE)
    assert found["requested"] is None
    assert overrides({"page-size": value}, {"page-size": 1}) == []


@pytest.mark.parametrize(
    ("asked", "reported", "same"),
    [(True, "true", True), ("on", True, True), (8, "8", True), ([1, 2], [1, 2], True), (0.8, 0.7, False)],
)
def test_values_are_compared_as_a_server_reads_them(asked: Any, reported: Any, same: bool) -> None:
    assert (overrides({"x-y": asked}, {"x_y": reported}) == []) is same


@pytest.mark.parametrize(
    "line",
    [
        "Attention backend not specified. Use fa3 backend by default.",
        "Cuda graph is disabled because of using torch native attention backend",
        "FlashMLA only supports a page_size of 64, change page_size to 64.",
        "DFLASH only supports speculative_num_steps == 1; overriding speculative_num_steps=3 to 1.",
        "DP attention is enabled. The chunked prefill size is adjusted to 2048 to avoid MoE kernel issues.",
        "FlashInfer TRTLLM MoE is enabled. --disable-shared-experts-fusion is automatically set.",
    ],
)
def test_lines_that_tell_of_a_change_are_known(line: str) -> None:
    (change,) = SGLANG.changes({}, [f"[2026-11-30 02:29:38 TP0] {line}", f"[2026-11-30 02:29:39 TP1] {line}"])
    assert (change.flag, change.effective) == (None, line)


@pytest.mark.parametrize("name", ["8b-fa3", "8b-triton", "tp2-8b-fa3"])
def test_a_launch_that_changed_nothing_worth_a_word_has_no_such_line(name: str) -> None:
    log = (scripted.LOGS / f"{name}.log").read_text(encoding="utf-8").splitlines()
    assert SGLANG.changes({}, log) == []

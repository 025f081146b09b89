"""Flags that do not go together are told before any GPU time; only what the engine refuses is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from sglang_catalogues import catalogue

from pivotbench.errors import UserError
from pivotbench.study import Study, check_conflicts, load_study

CATALOGUE = catalogue("0.5.16")

STUDY = """\
name: sample
engine: sglang
model: org/model
serve:
  tp-size: 2
backends:
  plain: {attention-backend: triton}
  grouped: {enable-dp-attention: true, dp-size: 2}
speculative:
  nextn:
    speculative-algorithm: NEXTN
    speculative-num-steps: 3
    speculative-eagle-topk: 1
    speculative-num-draft-tokens: 4
smoke:
  prompts: [{ask: "What is 2+2?"}]
throughput:
  workloads:
    noise: {kind: synthetic, prompt_tokens: 32, output_tokens: 16, concurrency: [1, 8]}
decision:
  metric: {workloads: {noise: 1}, concurrency: 1}
hosts: {gpus: 2}
"""
NGRAM = """\
  nextn: {speculative-algorithm: NGRAM}
"""


def study(folder: Path, *changes: tuple[str, str]) -> Study:
    text = STUDY
    for old, new in changes:
        assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times"
        text = text.replace(old, new)
    file = folder / "study.yaml"
    file.write_text(text, encoding="utf-8")
    return load_study(file)


def speculation(text: str) -> tuple[str, str]:
    return STUDY[STUDY.index("  nextn:") : STUDY.index("smoke:")], text


def refusal(study: Study) -> str:
    with pytest.raises(UserError) as caught:
        check_conflicts(study, {None: CATALOGUE})
    return str(caught.value).split("/study.yaml:")[-1]


def warnings(study: Study, kinds: frozenset[str] = frozenset()) -> list[str]:
    return [line.split("/study.yaml:")[-1] for line in check_conflicts(study, {None: CATALOGUE}, kinds)]


def test_a_study_whose_flags_go_together_has_no_warning(tmp_path: Path) -> None:
    assert warnings(study(tmp_path)) == []


def test_a_backend_that_the_engine_refuses_is_refused_with_its_line_and_the_rule(tmp_path: Path) -> None:
    message = refusal(study(tmp_path, ("dp-size: 2", "dp-size: 3")))
    assert message.startswith(
        "8: backends.grouped.dp-size: DP attention divides tp-size among dp-size groups"
    )
    assert message.endswith("[dp-attention-divides]")
    assert "\n" not in message


def test_a_speculation_that_is_refused_on_every_backend_is_refused(tmp_path: Path) -> None:
    message = refusal(study(tmp_path, ("    speculative-eagle-topk: 1\n", "")))
    assert message.startswith("12: speculative.nextn.speculative-num-steps: ")


def test_one_that_is_refused_on_some_backends_is_a_warning(tmp_path: Path) -> None:
    """NGRAM does not go with DP attention, but the winner may be another backend."""
    (line,) = warnings(study(tmp_path, speculation(NGRAM)))
    assert line.startswith(
        "10: speculative.nextn.speculative-algorithm: STANDALONE and NGRAM do not work with DP"
    )


def test_on_a_pinned_backend_it_is_refused(tmp_path: Path) -> None:
    message = refusal(study(tmp_path, speculation("  on: grouped\n" + NGRAM)))
    assert message.startswith("11: speculative.nextn.speculative-algorithm: ")


def test_a_flag_that_all_share_is_named_where_it_is_once(tmp_path: Path) -> None:
    message = refusal(study(tmp_path, ("tp-size: 2\n", "tp-size: 4\n")))
    assert message.startswith("5: serve.tp-size: tp-size x pp-size x dp-size")


def test_what_is_silently_changed_is_a_warning(tmp_path: Path) -> None:
    tokens = ("speculative-num-draft-tokens: 4", "speculative-num-draft-tokens: 8")
    (line,) = warnings(study(tmp_path, tokens))
    assert line.startswith(
        "14: speculative.nextn.speculative-num-draft-tokens: with speculative-eagle-topk 1 SG"
    )


def test_a_load_that_speculation_would_not_admit_is_a_warning(tmp_path: Path) -> None:
    (line,) = warnings(study(tmp_path, ("concurrency: [1, 8]", "concurrency: [1, 64]")))
    assert "48 requests" in line


def test_the_model_counts_where_it_is_known(tmp_path: Path) -> None:
    asked = study(tmp_path, ("attention-backend: triton", "mamba-radix-cache-strategy: no_buffer"))
    assert warnings(asked) == []
    with pytest.raises(UserError, match="no_buffer needs disable-overlap-schedule"):
        check_conflicts(asked, {None: CATALOGUE}, frozenset({"hybrid"}))


def test_of_a_matrix_the_matrix_is_named(tmp_path: Path) -> None:
    matrix = "  matrix: {moe-runner-backend: [triton, flashinfer_cutlass], quantization: [fp8]}"
    message = refusal(study(tmp_path, ("  plain: {attention-backend: triton}", matrix)))
    assert message.startswith("7: backends.matrix: flashinfer_cutlass serves MoE layers")


@pytest.mark.parametrize(
    ("name", "near"),
    [("NGRAMM", "NGRAM"), ("EAGEL3", "EAGLE3"), ("NEXT_N", "NEXTN"), ("STANDALON", "STANDALONE")],
)
def test_a_misspelt_algorithm_is_refused_with_the_right_name(tmp_path: Path, name: str, near: str) -> None:
    message = refusal(study(tmp_path, ("speculative-algorithm: NEXTN", f"speculative-algorithm: {name}")))
    assert message.startswith("11: speculative.nextn.speculative-algorithm: ")
    assert message.endswith(f"did you mean '{near}'?")


@pytest.mark.parametrize("name", ["eagle", "MY_PLUGIN_SPEC"])
def test_lower_case_is_understood_and_a_plugins_algorithm_is_let_pass(tmp_path: Path, name: str) -> None:
    changed = study(tmp_path, ("speculative-algorithm: NEXTN", f"speculative-algorithm: {name}"))
    assert warnings(changed) == []

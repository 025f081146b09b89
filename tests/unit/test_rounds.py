"""Stored races are read only while the study still runs all whom they name."""

from __future__ import annotations

from pathlib import Path

import pytest

from factory import stored_race
from pivotbench.campaign import Campaign
from pivotbench.errors import UserError
from pivotbench.files import write_json
from pivotbench.rounds import outlived_races, standing_races, stored_rounds
from pivotbench.study import load_study

STUDY = """
name: s
engine: llamacpp
model: {path: ./model.gguf}
backends: {a: {threads: 1}, b: {threads: 2}}
speculative: {ngram: {speculation: NGRAM_SIMPLE}}
smoke: {prompts: [{ask: What is 2+2?, contains: "4"}]}
throughput: {workloads: {chat: {kind: synthetic, prompt_tokens: 8, output_tokens: 8, concurrency: [1]}}}
decision: {metric: {workloads: {chat: 1}, concurrency: 1}, rounds: {min: 1, max: 2}}
hosts: {gpus: 0}
"""
BACKENDS = "results/s/race/backends.r1.json"
SPECULATIVE = "results/s/race/speculative.r1.json"


@pytest.fixture
def campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Campaign:
    """A study of a and b with the races of both phases, judged on a."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.yaml").write_text(STUDY)
    write_json(Path(BACKENDS), stored_race("backends", 1, ["a", "b"], base="a"))
    write_json(Path(SPECULATIVE), stored_race("speculative", 1, ["a+none", "a+ngram"]))
    return Campaign(study=load_study(tmp_path / "study.yaml"), root=tmp_path, local=False)


def changed(old: str, new: str) -> Campaign:
    path = Path("study.yaml")
    path.write_text(path.read_text().replace(old, new))
    return Campaign(study=load_study(path), root=path.parent, local=False)


def test_the_races_of_an_unchanged_study_are_read(campaign: Campaign) -> None:
    assert len(stored_rounds(campaign).evidence()) == 4
    assert outlived_races(campaign) == {}


@pytest.mark.usefixtures("campaign")
def test_a_race_that_judged_a_removed_backend_is_outlived_and_one_line_where_it_is_read() -> None:
    without = changed(", b: {threads: 2}", "")
    assert outlived_races(without) == {Path(BACKENDS): "b"}
    assert standing_races(without, without.holds) == frozenset()
    with pytest.raises(
        UserError, match=f"{BACKENDS}: names b, which the study no longer runs: put it back, or"
    ):
        stored_rounds(without).evidence()


@pytest.mark.usefixtures("campaign")
def test_a_race_that_asked_for_a_removed_backend_is_outlived() -> None:
    write_json(Path(BACKENDS), stored_race("backends", 1, ["a"], next=["a", "b"], ended=False))
    without = changed(", b: {threads: 2}", "")
    assert outlived_races(without) == {Path(BACKENDS): "b"}
    assert standing_races(without, without.holds) == frozenset()


@pytest.mark.usefixtures("campaign")
def test_a_removed_speculation_and_another_base_outlive_the_second_phase_alone() -> None:
    without = changed("ngram: {", "other: {")
    assert outlived_races(without) == {Path(SPECULATIVE): "a+ngram"}
    pinned = changed("speculative: {", "speculative: {on: b, ")
    assert outlived_races(pinned) == {Path(SPECULATIVE): "a+ngram, a+none"}

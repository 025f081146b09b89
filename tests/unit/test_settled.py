"""Which cells Snakemake need not look at: they hold, and all that was made of them is younger."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from factory import Cell, stage_files
from pivotbench import staleness
from pivotbench.campaign import Campaign
from pivotbench.cells import Cell as StudyCell
from pivotbench.cells import launch_request, stage_fingerprint
from pivotbench.files import write_json
from pivotbench.results import STAGES
from pivotbench.settled import PRODUCTS, Settled
from pivotbench.study import load_study

STUDY = """
name: s
engine: llamacpp
model: {path: ./model.gguf}
backends: {matrix: {threads: [1, 2]}}
smoke: {prompts: [{ask: What is 2+2?, contains: "4"}]}
throughput: {workloads: {chat: {kind: synthetic, prompt_tokens: 8, output_tokens: 8, concurrency: [1]}}}
decision: {metric: {workloads: {chat: 1}, concurrency: 1}, rounds: {min: 1, max: 1}}
hosts: {gpus: 0}
"""
BEGUN = 1_000_000_000


@pytest.fixture
def campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Campaign:
    """Two configurations in one round, race and decision; each file a second younger than the last."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.yaml").write_text(STUDY)
    found = Campaign(study=load_study(tmp_path / "study.yaml"), root=tmp_path, local=False)
    for cell in cells_of(found):
        request = launch_request(found.study, cell)
        contents = stage_files("s", Cell("backends", cell.configuration, 1))
        for stage in STAGES:
            wanted = stage_fingerprint(stage, request, found._smoke, found._throughput)
            write_json(cell.file(stage), contents[stage] | {"fingerprint": wanted})
    made = [found.race_file("backends", 1), *(found.results / name for name in PRODUCTS)]
    for path in made:
        path.parent.mkdir(exist_ok=True)
        path.write_text("{}\n")
    stages = [cell.file(stage) for cell in cells_of(found) for stage in STAGES]
    for second, path in enumerate([*stages, *made]):
        os.utime(path, (BEGUN + second, BEGUN + second))
    return found


def cells_of(campaign: Campaign) -> list[StudyCell]:
    return campaign.cells("backends", campaign.contenders("backends", None), 1)


def judge(campaign: Campaign) -> Settled:
    fresh = replace(campaign, _fingerprints={})
    return Settled(fresh, fresh.holds)


def settled(campaign: Campaign) -> list[bool]:
    judged = judge(campaign)
    return [cell in judged for cell in cells_of(campaign)]


def test_a_finished_campaign_is_settled(campaign: Campaign) -> None:
    assert settled(campaign) == [True, True]


def test_a_stage_that_is_missing_unreadable_or_of_other_settings_unsettles_its_cell_alone(
    campaign: Campaign,
) -> None:
    smoke = cells_of(campaign)[0].file("smoke")
    when, whole = smoke.stat().st_mtime, smoke.read_text()
    for content in (None, whole[:100], whole.replace('"fingerprint": "', '"fingerprint": "0')):
        smoke.unlink() if content is None else smoke.write_text(content)
        if content is not None:
            os.utime(smoke, (when, when))
        assert settled(campaign) == [False, True]
        smoke.write_text(whole)


def test_a_stage_younger_than_the_one_after_it_is_left_to_snakemake(campaign: Campaign) -> None:
    cell = cells_of(campaign)[0]
    launched_again = cell.file("teardown").stat().st_mtime + 0.5
    os.utime(cell.file("launch"), (launched_again, launched_again))
    assert settled(campaign) == [False, True]


@pytest.mark.parametrize("older", ["race/backends.r1.json", *PRODUCTS])
def test_a_cell_younger_than_what_was_made_of_it_is_left_to_snakemake(campaign: Campaign, older: str) -> None:
    path, first = campaign.results / older, cells_of(campaign)[0]
    between = first.file("teardown").stat().st_mtime + 0.5
    os.utime(path, (between, between))
    assert settled(campaign) == [True, False]


@pytest.mark.parametrize("missing", ["race/backends.r1.json", *PRODUCTS])
def test_what_is_missing_will_be_made_without_a_look_at_the_cells(campaign: Campaign, missing: str) -> None:
    (campaign.results / missing).unlink()
    assert settled(campaign) == [True, True]


def test_a_cell_is_judged_once_and_what_this_run_does_to_it_changes_nothing(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: Counter[Path] = Counter()
    fingerprints: Counter[str] = Counter()
    read, made = staleness.read_stage, stage_fingerprint

    def counted(path: Path) -> dict[str, Any] | None:
        reads[path] += 1
        return read(path)

    def hashed(stage: Any, launch: Any, *rest: Any) -> str:
        fingerprints[f"{stage} {launch['flags']}"] += 1
        return made(stage, launch, *rest)

    monkeypatch.setattr(staleness, "read_stage", counted)
    monkeypatch.setattr("pivotbench.campaign.stage_fingerprint", hashed)
    first, second = cells_of(campaign)
    second.file("smoke").unlink()
    judged = judge(campaign)
    assert [first in judged, second in judged] == [True, False]
    write_json(second.file("smoke"), {})
    first.file("launch").unlink()
    assert [first in judged, second in judged] == [True, False]
    assert reads == dict.fromkeys((first.file(stage) for stage in STAGES), 1)
    assert set(fingerprints.values()) == {1}

"""What grows with the number of cells is counted: files are read once, pairs far apart are not judged."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from campaigns import CHAT_RULES, run_phase
from factory import Cell, noisy, stage_files, stored_race
from pivotbench import staleness
from pivotbench.campaign import Campaign
from pivotbench.cells import launch_request, stage_fingerprint
from pivotbench.decision import contest as contests
from pivotbench.decision.classes import classes
from pivotbench.decision.contest import contest
from pivotbench.engines.catalogue import FlagCatalogue, FlagSpec
from pivotbench.files import write_json
from pivotbench.results import STAGES
from pivotbench.rounds import standing_races
from pivotbench.study import flags, load_study

STUDY = """
name: s
engine: llamacpp
model: {path: ./model.gguf}
backends: {matrix: {threads: [1, 2, 3]}}
smoke: {prompts: [{ask: What is 2+2?, contains: "4"}]}
throughput: {workloads: {chat: {kind: synthetic, prompt_tokens: 8, output_tokens: 8, concurrency: [1]}}}
decision: {metric: {workloads: {chat: 1}, concurrency: 1}, rounds: {min: 2, max: 2}}
hosts: {gpus: 0}
"""


@pytest.fixture
def campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Campaign:
    """Two rounds of three configurations, all files as the study asks for them, and the races."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.yaml").write_text(STUDY)
    found = Campaign(study=load_study(tmp_path / "study.yaml"), root=tmp_path, local=False)
    names = found.contenders("backends", None)
    for number in (1, 2):
        for cell in found.cells("backends", names, number):
            request = launch_request(found.study, cell)
            for stage, content in stage_files("s", Cell("backends", cell.configuration, number)).items():
                wanted = stage_fingerprint(stage, request, found._smoke, found._throughput)
                write_json(cell.file(stage), content | {"fingerprint": wanted})
        ended = number == 2
        race = stored_race("backends", number, names, next=[] if ended else names, ended=ended)
        write_json(found.race_file("backends", number), race)
    return found


def standing(campaign: Campaign) -> list[str]:
    return sorted(path.name for path in standing_races(campaign, campaign.holds))


def test_another_pinned_base_is_judged_anew(tmp_path: Path) -> None:
    def rules(on: str) -> str:
        speculative = f"speculative: {{on: {on}, n: {{speculation: NGRAM_SIMPLE}}}}\n"
        (tmp_path / "study.yaml").write_text(STUDY + speculative)
        return Campaign(study=load_study(tmp_path / "study.yaml"), root=tmp_path, local=False).decision_rules

    assert rules("threads-1") != rules("threads-2")


def test_a_run_with_nothing_to_do_reads_every_stage_file_once(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: Counter[Path] = Counter()
    read = staleness.read_stage

    def counted(path: Path) -> dict[str, Any] | None:
        reads[path] += 1
        return read(path)

    monkeypatch.setattr(staleness, "read_stage", counted)
    assert len(standing(campaign)) == 2
    for number in (1, 2):
        for cell in campaign.cells("backends", campaign.contenders("backends", None), number):
            assert all(campaign.stale(stage, cell) is None for stage in STAGES)
    assert len(reads) == 3 * 2 * len(STAGES)
    assert set(reads.values()) == {1}


def test_a_race_stands_only_while_all_its_cells_and_those_before_it_hold(campaign: Campaign) -> None:
    assert standing(campaign) == ["backends.r1.json", "backends.r2.json"]
    last = campaign.cells("backends", campaign.contenders("backends", None), 2)[-1]
    last.file("smoke").unlink()
    assert standing(campaign) == ["backends.r1.json"]
    first = campaign.cells("backends", campaign.contenders("backends", None), 1)[0]
    other = stage_files("s", Cell("backends", first.configuration, 1))["throughput"]
    write_json(first.file("throughput"), other | {"fingerprint": "of other settings"})
    fresh = replace(campaign, _fingerprints={})
    assert standing(fresh) == []


def test_flags_of_a_matrix_are_checked_without_comparing_each_value_with_each_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = 0
    text = flags.value_text

    def counted(value: Any) -> str:
        nonlocal texts
        texts += 1
        return text(value)

    (tmp_path / "study.yaml").write_text(STUDY.replace("[1, 2, 3]", str([*range(200)])))
    study = load_study(tmp_path / "study.yaml")
    monkeypatch.setattr(flags, "value_text", counted)
    catalogue = FlagCatalogue("llamacpp", "9.9", (FlagSpec("threads", aliases=("thread-count",)),))
    flags.check_flags(study, {None: catalogue})
    assert 200 <= texts <= 2 * 200, "once as a value of the matrix, once in its configuration"


@pytest.mark.parametrize(
    ("apart", "sd"), [(1.05, 0.001), (1.001, 0.05)], ids=["far apart", "too noisy for any two to be equal"]
)
def test_configurations_of_which_none_are_equal_are_classed_without_judging_every_pair(
    apart: float, sd: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(_phase: str, _names: Any, round_: int) -> list[Cell]:
        return [
            Cell("backends", name, round_, {("chat", 1): noisy(100 * apart**n, sd, name, round_)})
            for n, name in enumerate(f"c{i}" for i in range(12))
        ]

    rules = replace(CHAT_RULES, rounds_min=3, rounds_max=3)
    _, cells = run_phase(rules, "backends", [], make)
    state = contest(rules, "backends", cells)
    judged = 0
    judge = contests.judge

    def counted(*pair: Any) -> Any:
        nonlocal judged
        judged += 1
        return judge(*pair)

    monkeypatch.setattr(contests, "judge", counted)
    assert len(list(classes(state))) == 12
    assert judged == 11, "each leader against the best, and nobody else"

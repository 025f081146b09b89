"""Files spoilt by others, and clocks set back: the next run mends the ones and does not mind the others."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from faults.soak.files import content, difference
from pivotbench.results import STAGES, Stage
from workflow.campaign import DECISION, Folder


def half(path: Path) -> None:
    """Leave the first half of a file."""
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def test_half_written_and_corrupt_files_are_made_anew_and_said_so(campaign: Folder) -> None:
    before = content(campaign.results)
    damaged = ["race/backends.r1.json", "decision.json", "measurements.parquet", "environment.json"]
    for name in damaged:
        half(campaign.results / name)
    half(campaign.cell("good") / "smoke.json")
    run = campaign.snakemake(DECISION)
    assert run.code == 0, run.text
    for name in damaged:
        assert f"results/small/{name} is made anew: it is not whole" in run.text
    assert "smoke.json is made anew: it is not a readable result" in run.text
    assert run.cell_jobs() == {"smoke": 1, "throughput": 1, "teardown": 1}
    assert difference(content(campaign.results), before) is None
    assert campaign.snakemake(DECISION, "--dry-run").planned == {}


def test_corrupt_rows_beside_a_result_are_named_by_the_report_and_nothing_is_measured_anew(
    campaign: Folder,
) -> None:
    damaged = [campaign.cell("good") / "requests.parquet", campaign.cell("slow") / "telemetry.parquet"]
    half(damaged[0])
    damaged[1].write_bytes(b"no parquet at all")
    before = content(campaign.results)
    (campaign.results / "report.html").unlink()
    (campaign.results / "measurements.parquet").unlink()
    run = campaign.snakemake("all")
    assert run.code == 0, run.text
    assert not run.cell_jobs()
    page = (campaign.results / "report.html").read_text()
    for path in damaged:
        name = f"{path.relative_to(campaign.path)}: not the rows that throughput.json was computed from"
        assert name in page, path
    assert difference(content(campaign.results), before) is None


REDRAWN = "results/small/charts is made anew: it is not whole"


def test_charts_that_are_not_whole_are_drawn_anew_for_the_report(campaign: Folder) -> None:
    before = content(campaign.results)
    (campaign.results / "charts" / "ranking.json").write_text("{}")
    (campaign.results / "report.html").unlink()
    run = campaign.snakemake("all")
    assert run.code == 0, run.text
    assert REDRAWN in run.text
    assert run.jobs == {"charts": 1, "report": 1}
    assert difference(content(campaign.results), before) is None
    assert campaign.snakemake("all", "--dry-run").planned == {}


def test_charts_of_an_earlier_version_are_drawn_anew_from_what_is_stored(campaign: Folder) -> None:
    before = content(campaign.results)
    for file in (campaign.results / "charts").glob("*.json"):
        file.unlink()
    (campaign.results / "report.html").unlink()
    shutil.rmtree(campaign.path / ".snakemake")  # results alone, as they are sent around
    run = campaign.snakemake("all", config=("frozen=true",))
    assert run.code == 0, run.text
    assert REDRAWN in run.text
    assert run.jobs == {"charts": 1, "report": 1}
    assert difference(content(campaign.results), before) is None


@pytest.mark.parametrize("stage", STAGES)
def test_a_half_written_stage_file_has_that_stage_and_later_ones_made_anew(
    campaign: Folder, stage: Stage
) -> None:
    half(campaign.cell("slow") / f"{stage}.json")
    run = campaign.snakemake(DECISION, "--dry-run")
    assert f"{stage}.json is made anew: it is not a readable result" in run.text
    planned = {name: count for name, count in run.planned.items() if name in STAGES}
    assert planned == dict.fromkeys(STAGES[STAGES.index(stage) :], 1)


def test_a_damaged_race_is_one_line_where_nothing_may_be_launched(campaign: Folder) -> None:
    half(campaign.results / "race" / "backends.r1.json")
    run = campaign.snakemake(DECISION, config=("frozen=true",))
    assert run.code != 0
    assert "race/backends.r1.json: not JSON: remove it and run again" in run.text
    (campaign.results / "race" / "backends.r1.json").write_text("{}")
    run = campaign.snakemake(DECISION, config=("frozen=true",))
    assert run.code != 0 and "race/backends.r1.json: no race: remove it and run again" in run.text


@pytest.mark.parametrize("hours", [-5, 5], ids=["set back", "set ahead"])
def test_a_clock_that_was_set_while_a_campaign_ran_makes_nothing_anew(campaign: Folder, hours: int) -> None:
    for folder in {path.parent for path in campaign.results.rglob("teardown.json")}:
        for name in ("throughput.json", "teardown.json"):
            at = (folder / name).stat().st_mtime + hours * 3600
            os.utime(folder / name, (at, at))
    again = campaign.snakemake(DECISION, "--dry-run")
    assert not {"launch", "smoke", "throughput", "teardown"} & again.planned.keys(), again.text

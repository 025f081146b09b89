"""Targets with names people guess: what they say, that they launch nothing, how a comparison ends a run."""

from __future__ import annotations

import json
import re
import shutil

import jsonschema

from pivotbench.changes.model import json_schema
from workflow.campaign import DECISION, Folder

TARGETS = (
    "all",
    "backends",
    "speculative",
    "report",
    "validate",
    "stop_servers",
    "compare",
    "compare_gate",
)


def starts(folder: Folder) -> int:
    return folder.events.read_text().count("start") if folder.events.exists() else 0


def test_every_target_is_listed_with_one_line_of_what_it_does(fresh: Folder) -> None:
    run = fresh.snakemake("--list-target-rules")
    listed = dict(line.split(" (", 1) for line in run.text.splitlines() if " (" in line)
    for target in TARGETS:
        assert listed[target].endswith(".)"), target


def test_the_report_is_made_of_the_decision_and_its_charts_alone(campaign: Folder) -> None:
    (campaign.results / "decision.json").unlink()
    graph = campaign.snakemake("report", "--rulegraph").text
    names = dict(re.findall(r'(\d+)\[label = "(\w+)"', graph))
    edges = {(names[one], names[other]) for one, other in re.findall(r"(\d+) -> (\d+)", graph)}
    assert {one for one, other in edges if other == "report"} == {"decide", "charts"}, graph


def test_validate_says_what_would_run_and_starts_nothing(fresh: Folder) -> None:
    run = fresh.snakemake("validate")
    assert run.code == 0, run.text
    assert "OK: study.yaml: study small, its flags are those of sglang" in run.text
    assert "backends: 4 configurations, each in 1 rounds: 4 cells where all of them work" in run.text
    assert "speculative: 2 configurations on the winner" in run.text
    assert "time: 0.50 s to 1.6 s a cell are measured, the longer at 10 tok/s a stream" in run.text
    assert starts(fresh) == 0

    fresh.write(fresh.study() | {"serve": {"no-such-flag": 1}})
    refused = fresh.snakemake("validate")
    assert refused.code != 0
    assert "no-such-flag" in refused.text


def test_a_comparison_names_what_broke_and_only_its_gate_fails(campaign: Folder) -> None:
    shutil.copytree(campaign.results, campaign.path / "results" / "before")
    study = campaign.study()
    study["backends"]["slow"] |= {"script": ["crash", f"crash-log={campaign.path / 'crash.log'}"]}
    campaign.write(study)
    assert campaign.snakemake(DECISION).code == 0
    started = starts(campaign)
    pair = ("old=results/before", "new=results/small")

    run = campaign.snakemake("compare", config=pair)
    assert run.code == 0, run.text
    assert "slow broke: unsupported_arch" in run.text
    folder = campaign.path / "results" / "compare" / "before--small"
    found = json.loads((folder / "compare.json").read_text())
    jsonschema.validate(found, json_schema())
    assert not found["gate"]["passed"]
    assert "`compare_gate` fails:" in (folder / "summary.md").read_text()
    assert "The gate would stop this" in (folder / "report.html").read_text()

    shutil.rmtree(folder)
    gated = campaign.snakemake("compare_gate", config=pair)
    assert gated.code != 0
    assert "gate: slow worked and is eliminated: unsupported_arch" in gated.text
    assert (folder / "compare.json").is_file(), "it is written before the gate falls"
    assert starts(campaign) == started, "a comparison launches nothing, whatever became of the study"


def test_a_comparison_without_two_folders_is_one_line(campaign: Folder) -> None:
    none = campaign.snakemake("compare")
    assert none.code != 0
    assert "error: compare: no --config old= and --config new=" in none.text
    gone = campaign.snakemake("compare", config=("old=results/gone", "new=results/small"))
    assert gone.code != 0
    assert "error: --config old=results/gone: no such folder; there are results/small" in gone.text
    for run in (none, gone):
        assert "Traceback" not in run.text


def test_snakemakes_own_report_holds_the_decision_and_every_chart_with_its_caption(campaign: Folder) -> None:
    run = campaign.snakemake("--report", "snakemake.html")
    assert run.code == 0, run.text
    page = (campaign.path / "snakemake.html").read_text(encoding="utf-8")
    charts = sorted(path.name for path in (campaign.results / "charts").glob("*.html"))
    for name in (*charts, "report.html", "summary.md", "decision.json", "measurements.csv"):
        assert f"Adding {name}" in run.text
    for words in ("as one page", "two minutes", "for programs", "One row a sample"):
        assert words in page, words
    captions = {
        "ranking": "Each configuration",
        "frontier": "nothing else beats",
        "launch": "time of a launch",
    }
    for chart, words in captions.items():
        assert words in page, chart
    assert "A chart of the decision." not in page, "every chart has a caption of its own"

"""The report says the decision first, has every section, and never runs what a model wrote."""

from __future__ import annotations

import copy
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from markupsafe import escape

from campaigns import demo_rules, write_demo
from pivotbench.changes.folder import read_results
from pivotbench.charts.build import build_charts
from pivotbench.charts.field import fields
from pivotbench.charts.output import write_charts
from pivotbench.charts.spec import specifications
from pivotbench.charts.stored import write_index
from pivotbench.decision.decide import decide
from pivotbench.errors import UserError
from pivotbench.evidence import CellFiles
from pivotbench.figures import NO_BREAK
from pivotbench.files import read_json, write_json, write_text
from pivotbench.report import render
from pivotbench.report.answers import answer_tables
from pivotbench.report.inputs import read_chart_inputs, read_report_inputs
from pivotbench.report.outcomes import outcomes, tally
from pivotbench.report.story import facts, story
from pivotbench.report.tables import rank_note, ranking_rows, speculation_tables
from pivotbench.results import DECISION_SCHEMA, Reason
from pivotbench.summary.text import summary_markdown
from report_sample import Sample, addresses, elements, failed, sample
from report_sample import page as page_of

SECTIONS = [
    *("outcomes", "ranking", "frontier", "speculation"),
    *("answers", "stability", "launch", "energy", "limit", "flags"),
    *("levers", "hypotheses", "threats", "environment", "log"),
]
ATTACK = "</code></pre><script>window.stolen = true</script><img src=x onerror=alert(1)>"


def report(case: Sample) -> str:
    return page_of(case.decision, case.measurements, case.cells)


def sentences(case: Sample) -> list[str]:
    return [sentence.replace(NO_BREAK, " ") for sentence in story(case.decision).sentences]


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return sample(tmp_path_factory.mktemp("usual"), evidence_line=ATTACK)


@pytest.fixture(scope="module")
def page(usual: Sample) -> str:
    return report(usual)


def test_every_section_is_there_and_in_the_contents(page: str) -> None:
    assert re.findall(r'<section id="(\w+)">', page) == SECTIONS
    assert re.findall(r'<li><a href="#(\w+)">', page) == SECTIONS


def test_what_to_serve_crossings_and_the_pareto_set_stand_under_load(page: str, usual: Sample) -> None:
    load = page[page.index('<section id="frontier"') : page.index('<section id="speculation"')]
    plain = re.sub(r"<[^>]+>", " ", load)
    assert "What to serve by load" in plain and "the mix at concurrency 1 (decides)" in plain
    assert "At concurrency 1 flash-on is faster on free" in re.sub(r"\s+", " ", plain)
    assert "The points none beats in both" in plain
    alone = {**usual.decision["regions"], "best": usual.decision["regions"]["best"][:1]}
    bare = {**usual.decision, "regions": alone, "pareto": []}
    text = page_of(bare, usual.measurements, usual.cells)
    assert "What to serve by load" not in text and "The points none beats in both" not in text


def test_the_decision_stands_on_top_with_its_command(page: str, usual: Sample) -> None:
    top = page[page.index("<main") : page.index('<section id="outcomes"')]
    assert story(usual.decision).headline == "Undecided between flash-on and kv-q8"
    assert re.sub(r"<[^>]+>", "", top).count("python -m server --model model.gguf --variant flash-on") == 1
    assert 'data-copy="launch-command"' in top


def test_undecided_says_what_is_known_and_what_would_tell(usual: Sample) -> None:
    first, second, third = sentences(usual)
    assert first == (
        "flash-on reaches 92.0 tok/s (95 % interval 88.3 to 95.7, 3 rounds); the interval for kv-q8 is "
        "−7.5 % to +4.3 % from it, and about 4 more rounds would likely tell. Until then serve "
        "flash-on: nothing is shown to be faster."
    )
    assert second == "Of 6 backends, 2 do not work (kv-q4 and kv-q8-no-flash); 2 are slower."
    assert third == (
        "Speculation pays on repetitive (up to 1.55×) and is undecided on free. flash-on+ngram-simple on "
        "repetitive: 1.55× (1.46 to 1.65) with 1 stream, pays with 4 streams."
    )


def test_a_race_that_did_not_end_chooses_nobody_and_blames_nobody(usual: Sample) -> None:
    unfinished = {**usual.decision, "winner": None, "launch_command": None}
    told = story(unfinished)
    assert (told.tone, told.headline) == ("open", "No configuration is chosen yet")
    assert "flash-on has the highest mean so far" in told.sentences[0]
    assert "no winner yet" in summary_markdown(unfinished)


def test_nobody_is_called_best_while_it_is_undecided(page: str, usual: Sample, tmp_path: Path) -> None:
    first = outcomes(usual.decision, usual.cells)["backends"][0]
    assert (first.configuration, first.verdict, first.tone) == ("flash-on", "highest mean", "open")
    assert not re.search(r"[>·] ?best<", page)
    clear = sample(tmp_path, speeds={"fast": 90.0, "slow": 60.0}, speculation=False)
    assert outcomes(clear.decision, clear.cells)["backends"][0].verdict == "best"


def test_how_many_are_out_and_where_is_said_first(usual: Sample) -> None:
    assert tally(outcomes(usual.decision, usual.cells)) == [
        f"Of 6{NO_BREAK}backends, 2 are out: 1 at launch and 1 at smoke."
    ]


def test_speculation_at_the_load_that_decides_stands_before_the_others(usual: Sample) -> None:
    tables = speculation_tables(usual.decision)
    assert [load[:2] for load, _ in tables.deciding] == [("free", 1), ("repetitive", 1)]
    assert [load[:2] for load, _ in tables.others] == [("free", 4), ("repetitive", 4)]


def test_a_known_limit_is_a_table_with_its_source(usual: Sample) -> None:
    row = {
        "workload": "free",
        "measured_tok_s": 90.0,
        "roofline_tok_s": 120.0,
        "share": 0.75,
        "bytes_per_pass": 3e8,
        "cache_bytes_per_pass": 1e7,
        "tokens_per_pass": 1.0,
    }
    known = {
        "configuration": "flash-on",
        "gpu": "NVIDIA H200",
        "gpus": 1,
        "bandwidth_gb_s": 4800.0,
        "source": "https://example.org/h200",
        "measured_tok_s": 90.0,
        "roofline_tok_s": 120.0,
        "share": 0.75,
        "reason": None,
        "by_workload": [row],
    }
    text = page_of({**usual.decision, "limit": known}, usual.measurements, usual.cells)
    limit = text[text.index('<section id="limit"') : text.index('<section id="flags"')]
    assert "reaches 75 % of what the memory of NVIDIA H200 allows" in limit
    assert 'href="https://example.org/h200"' in limit
    assert f"75{NO_BREAK}%" in limit


def test_a_clear_winner_is_served(tmp_path: Path) -> None:
    case = sample(tmp_path, speeds={"fast": 90.0, "slow": 60.0}, speculation=False, broken=False)
    assert story(case.decision).headline == "Serve fast"
    assert sentences(case) == [
        "fast reaches 90.0 tok/s (95 % interval 86.4 to 93.6, 3 rounds), 50 % ahead of slow.",
        "All 2 backends work; 1 is slower.",
        "Speculation was not measured.",
    ]


def test_nothing_healthy_has_a_report_of_its_own(tmp_path: Path) -> None:
    case = sample(tmp_path, speeds={}, speculation=False)
    text = report(case)
    assert "No configuration can be recommended" in text
    assert "Nothing could be ranked" in text
    assert 'data-copy="launch-command"' not in text
    assert re.findall(r'<section id="(\w+)">', text) == SECTIONS


def test_nothing_measured_at_all_has_one_too(tmp_path: Path) -> None:
    text = report(sample(tmp_path, speeds={}, speculation=False, broken=False))
    assert "No cell has run yet" in text


def test_what_a_server_wrote_stays_text(page: str) -> None:
    assert "window.stolen" in page  # it is shown ...

    found = elements(page)
    assert [tag for tag, attributes in found if tag == "script" and "type" not in attributes] == [
        "script"
    ] * 4
    assert "img" not in {tag for tag, _ in found}  # ... and is neither a script nor an image


def test_only_the_reports_own_scripts_are_allowed_and_no_connection(page: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy
    assert "default-src &#39;none&#39;" in policy[1]
    assert policy[1].count("sha256-") == 4
    assert "unsafe-eval" not in policy[1]
    assert not addresses(page)


def test_links_that_are_not_of_the_web_are_left_out(usual: Sample) -> None:
    broken = outcomes(usual.decision, usual.cells)["backends"][-1]
    assert broken.configuration == "kv-q8-no-flash"
    assert all(link.startswith("https://") for failure in broken.failures for link in failure.links)


def test_a_failure_says_what_to_do_in_the_report_and_in_the_summary(usual: Sample, page: str) -> None:
    for row in usual.decision["eliminated"]:
        assert row["remedy"]
        assert f"<b>What to do:</b> {escape(row['remedy'])}" in page
        assert f"  - What to do: {row['remedy']}\n" in summary_markdown(usual.decision)


def test_the_matrix_shows_each_stage_of_each_configuration(usual: Sample) -> None:
    matrix = {row.configuration: row for row in outcomes(usual.decision, usual.cells)["backends"]}
    states = {name: [outcome.state for outcome in row.stages.values()] for name, row in matrix.items()}
    assert states["flash-on"] == ["ok"] * 4
    assert states["kv-q4"] == ["ok", "failed", "none", "ok"]
    assert states["kv-q8-no-flash"] == ["failed", "none", "none", "none"]
    assert matrix["kv-q4"].verdict == "eliminated: garbage"
    assert matrix["flash-off"].verdict.replace(NO_BREAK, " ") == "−18 %, slower"


def test_answers_say_whom_they_are_held_against_what_was_set_aside_and_who_agrees(usual: Sample) -> None:
    first, second = answer_tables(usual.decision)
    assert first.statement == "Answers are held against flash-on on 3 of 4 prompts; it fails the other itself"
    assert first.aside == "Set aside: “What is the capital of France?”."
    assert [row.verdict for row in first.rows] == ["reference", "agrees", "agrees", "agrees"]
    assert [row.verdict for row in second.rows] == ["reference", "same text", "text changed"]
    assert "no near tie on 1 of 4 prompts" in second.rows[-1].note


def test_who_is_out_by_comparison_shows_both_answers_although_its_stages_went_well(usual: Sample) -> None:
    entry = failed("kv-q8", "smoke", Reason.of("wrong_answer", "is wrong", ("kv-q8: 5", "flash-on: 4")))
    decision = {**usual.decision, "eliminated": [*usual.decision["eliminated"], entry]}
    row = next(r for r in outcomes(decision, usual.cells)["backends"] if r.configuration == "kv-q8")
    assert (row.stages["smoke"].state, row.stages["smoke"].text) == ("failed", "wrong answer")
    assert row.failures[0].evidence == ("kv-q8: 5", "flash-on: 4")
    assert answer_tables(decision)[0].rows[1].verdict == "wrong answer"


def test_cost_and_confidence_are_named(usual: Sample) -> None:
    shown = {fact.name: fact.value.replace(NO_BREAK, " ") for fact in facts(usual.decision)}
    assert shown == {
        "Speed": "92.0 tok/s",
        "Confidence": "95 %",
        "Evidence": "3 rounds",
        "Cost": "14 launches",
    }


def test_tables_are_readable_by_machines_that_read_aloud(page: str) -> None:
    assert page.count("<h1") == 1
    assert not re.search(r"<th(?![^>]*scope=)[ >]", page)
    assert 'aria-live="polite"' in page
    assert '<html lang="en">' in page


def test_a_hundred_configurations_stay_below_five_megabytes(tmp_path: Path) -> None:
    speeds = {f"backend-{i:03d}": 100.0 - 0.4 * i for i in range(100)}
    case = sample(tmp_path, speeds=speeds, rounds=3)
    assert len(report(case).encode()) < 5_000_000


@pytest.mark.slow
def test_the_entry_points_work_on_a_decided_study(tmp_path: Path) -> None:
    results = write_demo(tmp_path)
    scripts = Path(__file__).resolve().parents[2] / "scripts"
    for entry, output in (("chart.py", "charts"), ("report.py", "report.html")):
        command = [sys.executable, scripts / entry, "--results", results, "--output", results / output]
        subprocess.run(command, check=True)
    assert "Serve" in (results / "report.html").read_text()
    assert (results / "charts" / "ranking-speculative.png").is_file()


def test_an_undecided_row_says_what_would_close_it_and_no_more(usual: Sample) -> None:
    rows = ranking_rows(fields(usual.decision)["backends"], usual.decision["metric"])
    notes = {row.configuration: row.note for row in rows if row.verdict == "undecided"}
    assert notes == {"kv-q8": f"about 4{NO_BREAK}more rounds would likely tell"}
    once = rank_note({"reason": "a single round decides nothing", "rounds_needed": 2})
    assert once.startswith("a single round decides nothing; about 2")


def test_only_what_the_decision_rests_on_is_evidence(tmp_path: Path) -> None:
    results = write_demo(tmp_path)
    stray = results / "backends" / "not-in-the-study" / "r1"
    stray.mkdir(parents=True)
    inputs = read_chart_inputs(results)
    assert {cell.configuration for cell in inputs.cells} > {"flash-on", "kv-q4", "flash-on+none"}
    read, measured = launches(inputs.cells), set(inputs.measurements["launch_id"])
    assert read == measured, "charts show the launches of the table and no other"
    write_index(results / "charts", [])
    assert launches(read_report_inputs(results).cells) == measured, "and so does the report"


def test_once_a_base_is_pinned_its_backends_are_evidence_nowhere(tmp_path: Path) -> None:
    results = write_demo(tmp_path)
    races = [read_json(path) for path in sorted((results / "race").glob("speculative.r*.json"))]
    pinned = replace(demo_rules(), speculative_base="flash-on")
    cells = read_results(results).cells
    write_json(results / "decision.json", decide(pinned, races, cells))
    compared = read_results(results).cells
    assert {cell.phase for cell in compared} == {"speculative"}
    write_index(results / "charts", [])
    inputs = read_report_inputs(results)
    assert {cell.phase for cell in inputs.cells} == {"speculative"}
    assert (results / "backends" / "kv-q8" / "r1" / "launch.json").is_file(), "though its files are there"
    assert "kv-q8" not in render(inputs.decision, {}, inputs.cells)


def launches(cells: Iterable[CellFiles]) -> set[str | None]:
    return {cell.launch_id for cell in cells if cell.measured}


def test_raw_rows_that_are_not_those_of_the_result_are_named(tmp_path: Path) -> None:
    results = write_demo(tmp_path)
    write_index(results / "charts", [])
    assert read_report_inputs(results).altered == []
    [altered, gone, *_] = sorted(results.rglob("requests.parquet"))
    altered.write_bytes(altered.read_bytes() + b"more")
    gone.unlink()
    inputs = read_report_inputs(results)
    [line] = inputs.altered
    assert line.startswith(f"{altered}: not the rows that throughput.json was computed from")
    assert str(altered) in render(inputs.decision, {}, inputs.cells, inputs.altered)


def test_a_decision_of_another_version_is_one_line(tmp_path: Path) -> None:
    results = write_demo(tmp_path)
    file = results / "decision.json"
    file.write_text(file.read_text().replace(DECISION_SCHEMA, "pivotbench/decision/1"))
    with pytest.raises(UserError, match=r"decision\.json: written by another version .*; remove it"):
        read_report_inputs(results)


def test_a_study_without_decision_is_a_users_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"decision\.json: missing; run"):
        read_report_inputs(tmp_path)


def test_the_report_has_the_charts_that_were_drawn_and_all_that_the_stage_files_say(tmp_path: Path) -> None:
    results = write_demo(tmp_path)
    inputs, whole = read_chart_inputs(results), read_results(results).cells
    charts = specifications(build_charts(inputs.decision, inputs.measurements, inputs.cells))
    write_charts(charts, results / "charts", "source")
    read = read_report_inputs(results)
    told = render(read.decision, read.charts, read.cells)
    assert told == page_of(inputs.decision, inputs.measurements, whole)


def test_a_report_without_whole_charts_is_a_users_error(tmp_path: Path) -> None:
    results = write_demo(tmp_path)
    with pytest.raises(UserError, match=r"charts: missing; run `snakemake --cores 1 .*charts` first"):
        read_report_inputs(results)
    (results / "charts").mkdir()
    with pytest.raises(UserError, match=r"charts: not whole \(index\.json: missing\); remove it and run"):
        read_report_inputs(results)


def test_a_decision_that_is_not_json_is_one_line(tmp_path: Path) -> None:
    write_text(tmp_path / "decision.json", "{")
    with pytest.raises(UserError, match=r"decision\.json: not JSON; remove it and run again"):
        read_report_inputs(tmp_path)


def test_no_text_of_a_model_or_server_is_markup_in_the_summary(usual: Sample) -> None:
    decision = copy.deepcopy(usual.decision)
    decision["model"] = decision["log"][0] = ATTACK
    decision["launch_command"] = f"python -m server\n```\n{ATTACK}"
    for row in decision["eliminated"]:
        row |= {
            "reason": f"[here](javascript:alert(1)) {ATTACK}",
            "evidence": [f"`{ATTACK}`", f"```\n{ATTACK}"],
        }
    for part in decision["agreement"]:
        part["set_aside"] = [f"| {ATTACK} ![x](http://x)"]
    summary = summary_markdown(decision)
    for link in ("[here](javascript", "[x](http"):
        assert summary.count("\\" + link) == summary.count(link) > 0
    own = re.sub(r"</?details>|<summary><b>[^<]*</b></summary>", "", summary)
    without_code = re.sub(r"(?s)(`+)(?!`).*?(?<!`)\1(?!`)", "", own)
    assert "window.stolen" in without_code
    assert "<" not in without_code


@pytest.mark.parametrize("where", ["model", "log", "threats", "hypotheses", "eliminated", "agreement"])
def test_no_text_of_a_model_or_server_is_markup_in_the_report(usual: Sample, where: str) -> None:
    decision = copy.deepcopy(usual.decision)
    decision[where] = ATTACK if where == "model" else attacked(decision[where])
    page = report(replace(usual, decision=decision))
    assert "window.stolen" in page
    assert "<script>window.stolen" not in page
    assert "<img src=x" not in page


def attacked(value: Any) -> Any:
    """The same value with every sentence in it an attack."""
    if isinstance(value, dict):
        return {key: attacked(part) for key, part in value.items()}
    if isinstance(value, list):
        return [attacked(part) for part in value]
    return f"{value} {ATTACK}" if isinstance(value, str) and " " in value else value

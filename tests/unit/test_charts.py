"""Charts say what they show, fit any number of configurations, and are whole on their own."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import altair as alt
import pytest
import vl_convert

from pivotbench.charts import output, stability
from pivotbench.charts.build import build_charts
from pivotbench.charts.crowd import MOST_DRAWN
from pivotbench.charts.field import Field, verdict_words
from pivotbench.charts.hues import OTHERS, Hues
from pivotbench.charts.layout import inline
from pivotbench.charts.output import plain_opacity, two_drawing, write_charts
from pivotbench.charts.page import inert_json, unbroken, vega
from pivotbench.charts.question import Question
from pivotbench.charts.reach import Reach
from pivotbench.charts.source import source_line
from pivotbench.charts.spec import specifications
from pivotbench.charts.theme import DARK, LIGHT, config
from pivotbench.errors import UserError
from pivotbench.figures import NO_BREAK, names, number, percent, percent_interval, seconds
from report_sample import Sample, addresses, sample


def drawn(case: Sample) -> dict[str, dict[str, Any]]:
    charts = build_charts(case.decision, case.measurements, case.cells)
    return {name: chart.to_dict() for name, chart in charts.items()}


def finding(spec: dict[str, Any]) -> str:
    return str(spec["usermeta"]["finding"]).replace(NO_BREAK, " ")


def many(quantity: int) -> dict[str, float]:
    return {f"backend-{i:03d}": 100.0 - 0.4 * i for i in range(quantity)}


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return sample(tmp_path_factory.mktemp("usual"))


def test_every_chart_is_there_and_its_title_states_a_finding(usual: Sample) -> None:
    charts = drawn(usual)
    assert list(charts) == [
        *("ranking", "frontier", "speculation", "stability", "hardware", "launch", "energy")
    ]
    assert finding(charts["ranking"]).startswith("Undecided between flash-on and kv-q8, which is −7.5 % to")
    assert finding(charts["frontier"]) == "flash-on leads on free; flash-on+ngram-simple leads on repetitive"
    assert finding(charts["speculation"]) == (
        "Speculation pays on repetitive (up to 1.55×) and is undecided on free"
    )
    assert re.match(
        r"A relaunch moves speed by \d.* no round left the 10 % margin", finding(charts["stability"])
    )
    assert finding(charts["hardware"]).startswith("Power 135 to 190 W, clocks steady at 1,980 MHz, temp")
    assert finding(charts["energy"]).startswith("A token costs 1.")
    assert finding(charts["launch"]).endswith("“load weights” takes 61 %")


def test_a_decided_ranking_names_the_fastest_and_its_lead(tmp_path: Path) -> None:
    case = sample(tmp_path, speeds={"fast": 90.0, "slow": 60.0}, speculation=False)
    assert finding(drawn(case)["ranking"]) == "fast is fastest at 90.0 tok/s, 50 % ahead of slow"


def test_equivalents_are_called_so(tmp_path: Path) -> None:
    case = sample(tmp_path, speeds={"a": 90.0, "b": 89.0}, verdicts={"b": "equivalent"}, speculation=False)
    assert finding(drawn(case)["ranking"]) == "a and b are equivalent within 10 %, at 90.0 tok/s"


def test_undecided_everywhere_is_said(tmp_path: Path) -> None:
    open_ = dict.fromkeys(("kv-q8", "flash-off", "no-repack"), "undecided")
    title = finding(drawn(sample(tmp_path, verdicts=open_))["ranking"])
    assert title == "Undecided between flash-on, kv-q8, flash-off and 1 more"


def test_one_round_claims_no_stability(tmp_path: Path) -> None:
    case = sample(tmp_path, rounds=1)
    charts = drawn(case)
    assert finding(charts["stability"]) == "One round each: what a relaunch changes is not known yet"
    assert vl_convert.vegalite_to_svg(charts["ranking"]).startswith("<svg")


def test_where_nothing_is_healthy_nothing_is_drawn(tmp_path: Path) -> None:
    case = sample(tmp_path, speeds={}, speculation=False)
    assert set(drawn(case)) == {"launch"}  # one of the broken became ready before it answered garbage


def test_without_cells_and_samples_there_are_no_charts(tmp_path: Path) -> None:
    case = sample(tmp_path, speeds={}, speculation=False, broken=False)
    assert drawn(case) == {}


@pytest.mark.parametrize("quantity", [1, 100])
def test_any_number_of_configurations_can_be_drawn(tmp_path: Path, quantity: int) -> None:
    case = sample(tmp_path, speeds=many(quantity), rounds=2, speculation=False)
    for spec in drawn(case).values():
        assert vl_convert.vegalite_to_svg(spec, config=config(LIGHT)).startswith("<svg")


def test_more_configurations_than_colours_share_a_grey(tmp_path: Path) -> None:
    case = sample(tmp_path, speeds=many(12), rounds=1, speculation=False)
    labels = [entry["label"] for entry in drawn(case)["stability"]["usermeta"]["legend"]]
    assert labels == [*(f"backend-{i:03d}" for i in range(len(LIGHT.hues))), OTHERS]


def test_a_slide_shows_forty_rows_and_says_of_how_many(tmp_path: Path) -> None:
    charts = drawn(sample(tmp_path, speeds=many(60), rounds=1, speculation=False))
    assert charts["ranking"]["usermeta"]["caption"].endswith("The fastest 40 of 60 are shown.")
    assert "The 40 that need least of 60 are shown" in charts["energy"]["usermeta"]["caption"]
    assert len(charts["energy"]["usermeta"]["table"]["rows"]) == 60


def test_of_a_crowd_those_that_matter_are_drawn_and_the_tables_have_all(tmp_path: Path) -> None:
    case = sample(tmp_path, speeds=many(100), rounds=2, speculation=False)
    for cell in case.cells[70:72]:
        assert cell.throughput is not None
        for run in cell.throughput["runs"]:
            run["telemetry"]["throttled"] = True
    slowest = "backend-099"
    case.decision["pareto"].append({"configuration": slowest, "workload": "free", "concurrency": 1})
    case.measurements.loc[
        (case.measurements["configuration"] == "backend-090") & (case.measurements["round"] == 1),
        "output_tok_s",
    ] *= 2
    charts = drawn(case)
    shown = {name: marks(charts[name]) for name in ("frontier", "stability", "hardware")}
    assert {len(each) for each in shown.values()} == {MOST_DRAWN}
    assert all(each >= set(Hues.of(case.decision).named) for each in shown.values())
    assert slowest in shown["frontier"], "it is on the Pareto line"
    assert "backend-090" in shown["stability"], "it moved most"
    assert {"backend-070", "backend-071"} <= shown["hardware"], "they were throttled"
    for name in shown:
        assert f"Drawn are {MOST_DRAWN} of 100 configurations" in charts[name]["usermeta"]["caption"]
    for name in ("frontier", "stability"):
        assert len({row[0] for row in charts[name]["usermeta"]["table"]["rows"]}) == 100


def test_windows_are_drawn_where_those_of_the_configurations_shown_are_few_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = sample(tmp_path, speeds=many(2 * MOST_DRAWN), rounds=1, speculation=False, broken=False)
    samples = Question.of(case.decision).samples(case.measurements)
    half = len(samples) // 2
    for most, drawn_ in ((half, half), (half - 1, 0)):
        monkeypatch.setattr(stability, "MOST_WINDOWS", most)
        chart = drawn(case)["stability"]
        windows = [row for rows in chart["datasets"].values() for row in rows if "workload" in row]
        assert len(windows) == drawn_
        assert ("too many to draw" in chart["usermeta"]["caption"]) == (not drawn_)


def test_what_is_no_crowd_is_drawn_whole(tmp_path: Path) -> None:
    charts = drawn(sample(tmp_path, speeds=many(MOST_DRAWN), rounds=1, speculation=False))
    for name in ("frontier", "stability", "hardware"):
        assert len(marks(charts[name])) == MOST_DRAWN
        assert "Drawn are" not in charts[name]["usermeta"]["caption"]


def marks(spec: dict[str, Any]) -> set[str]:
    """Return the configurations that a specification has marks of."""
    return {row["name"] for rows in spec["datasets"].values() for row in rows if "name" in row}


def test_charts_need_nothing_but_what_was_measured(usual: Sample) -> None:
    measured = [replace(cell, smoke=None, teardown=None) for cell in usual.cells]
    assert drawn(replace(usual, cells=measured)) == drawn(usual)


def test_charts_without_a_table_beside_them_bring_their_figures(usual: Sample) -> None:
    for name in ("frontier", "stability", "launch", "energy"):
        table = drawn(usual)[name]["usermeta"]["table"]
        assert {len(row) for row in table["rows"]} == {len(table["headings"])}
        assert "flash-on" in {row[0] for row in table["rows"]}


def test_throttled_rounds_stand_in_the_title(tmp_path: Path) -> None:
    case = sample(tmp_path, rounds=1, speculation=False)
    cell = next(cell for cell in case.cells if cell.measured)
    assert cell.throughput is not None
    for run in cell.throughput["runs"]:
        run["telemetry"]["throttled"] = True
    title = finding(drawn(case)["hardware"])
    assert title.startswith("1 round of throttled clocks, power")


def test_a_picture_explains_only_the_colours_it_has(usual: Sample) -> None:
    svg = vl_convert.vegalite_to_svg(drawn(usual)["speculation"], config=config(LIGHT))
    assert ">flash-on+ngram-mod<" in svg
    assert ">no-repack<" not in svg
    assert f">{OTHERS}<" not in svg


def test_a_configuration_keeps_its_colour_in_all_charts(usual: Sample) -> None:
    hues = Hues.of(usual.decision)
    domains = set(re.findall(r'"domain": (\["others".*?\])', json.dumps(drawn(usual))))
    assert len(domains) == 1
    assert hues.series("flash-on+none") == hues.series("flash-on") == "flash-on"


def test_a_baseline_that_others_lead_is_not_called_the_best() -> None:
    ranking = [{"configuration": "a+ngram"}, {"configuration": "a+none"}]
    assert verdict_words("a+none", Field(ranking, "a+none", {})) == "baseline"
    assert verdict_words("a+none", Field(ranking[::-1], "a+none", {})) == "best"


def test_files_stand_alone_and_stale_ones_go(usual: Sample, tmp_path: Path) -> None:
    charts = build_charts(usual.decision, usual.measurements, usual.cells)
    (tmp_path / "gone.svg").write_text("<svg/>")
    source = source_line(usual.decision, usual.cells)
    write_charts(specifications({"ranking": charts["ranking"]}), tmp_path, f"{source} <&")
    kinds = ("html", "json", "png", "svg")
    assert {p.name for p in tmp_path.iterdir()} == {"index.json", *(f"ranking.{kind}" for kind in kinds)}
    assert (tmp_path / "ranking.png").read_bytes().startswith(b"\x89PNG")
    svg = (tmp_path / "ranking.svg").read_text()
    assert "flash-on" in svg
    assert "Undecided between" in svg
    assert (
        "Pivotbench: sample, SmolLM2-135M-Instruct on llamacpp 2026.10.11549, Example CPU, 2 March 2026"
        in svg
    )
    assert ElementTree.fromstring(svg).get("height") == ElementTree.fromstring(svg)[0].get("height")
    assert not addresses((tmp_path / "ranking.html").read_text())


def test_two_processes_draw_what_one_draws(usual: Sample, tmp_path: Path) -> None:
    charts = specifications(build_charts(usual.decision, usual.measurements, usual.cells))
    some = {name: charts[name] for name in ("ranking", "launch", "energy")}
    one, two = tmp_path / "one", tmp_path / "two"
    write_charts(some, one, "source")
    with two_drawing() as meanwhile:
        write_charts(some, two, "source", meanwhile)
    assert {path.name: path.read_bytes() for path in one.iterdir()} == {
        path.name: path.read_bytes() for path in two.iterdir()
    }


def test_what_the_other_process_cannot_draw_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not all charts could be drawn"), two_drawing() as meanwhile:
        meanwhile(["missing"], tmp_path, "source")


MORE_THAN_A_PIPE_HOLDS = ["x" * 100_000]


def test_a_process_that_ends_at_once_instead_of_drawing_is_told_and_hides_no_other_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "draw.py"
    script.write_text("raise SystemExit(1)")
    monkeypatch.setattr(output, "SCRIPT", script)
    with pytest.raises(UserError, match="not all charts could be drawn"), two_drawing() as meanwhile:
        meanwhile(MORE_THAN_A_PIPE_HOLDS, tmp_path, "source")
    with pytest.raises(UserError, match="no space left"), two_drawing() as meanwhile:
        meanwhile(MORE_THAN_A_PIPE_HOLDS, tmp_path, "source")
        raise UserError("no space left")


def test_every_kind_of_file_that_a_chart_is_written_as_is_named_where_a_run_speaks_of_them() -> None:
    kinds = {".html": "HTML", ".svg": "SVG", ".png": "PNG", ".json": "Vega-Lite"}
    assert kinds.keys() == set(output.SUFFIXES)
    workflow = Path(__file__).parents[2] / "workflow"
    rules = (workflow / "rules" / "report.smk").read_text()
    for lead in ("Each chart alone: ", "charts: drawing each as "):
        said = rules.partition(lead)[2].partition('"')[0]
        assert all(kind in said for kind in kinds.values()), lead
    caption = (workflow / "report" / "chart.rst").read_text().rpartition("beside it as ")[2]
    assert all(kind in caption for suffix, kind in kinds.items() if suffix != ".html")


def test_no_path_that_is_painted_once_has_an_opacity_as_a_whole() -> None:
    line = '<path d="M0,0L9,9" stroke="#9aa3ad" stroke-width="2" opacity="0.2"/>'
    point = '<path d="M1,1h2v2h-2Z" fill="#9aa3ad" stroke="none" opacity="0.35"/>'
    assert plain_opacity(line) == line.replace(" opacity", " stroke-opacity")
    assert plain_opacity(point) == point.replace(" opacity", " fill-opacity")
    for kept in (
        '<path d="M1,1h2v2h-2Z" fill="#9aa3ad" stroke="#000000" opacity="0.35"/>',
        '<path d="M1,1h2v2h-2Z" fill="#9aa3ad" fill-opacity="0.5" opacity="0.35"/>',
        '<text fill="#57606a" opacity="0.5">words</text>',
    ):
        assert plain_opacity(kept) == kept


def test_rows_are_copied_by_nobody_and_each_chart_stays_a_valid_one(usual: Sample) -> None:
    rows = [{"name": "a"}]
    assert (alt.Chart(inline(rows)).mark_point() + alt.Chart().mark_line()).to_dict()
    assert alt.Chart(inline(rows)).mark_point().copy(deep=True).data.values[0] is rows[0]
    for chart in build_charts(usual.decision, usual.measurements, usual.cells).values():
        assert chart.to_dict(validate=True) == chart.to_dict(validate=False)


def test_colours_reach_the_contrast_of_graphics_on_their_ground() -> None:
    for ink in (LIGHT, DARK):
        assert min(contrast(hue, ink.background) for hue in ink.hues) >= 3
        assert min(contrast(text, ink.background) for text in (ink.text, ink.muted)) >= 4.5


def contrast(one: str, other: str) -> float:
    """WCAG 2.2 contrast ratio."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_figures_read_as_people_write_them() -> None:
    plain = [number(71.64), number(1234.5), number(0.0456), seconds(0.0321), seconds(150), seconds(7300)]
    assert [text.replace(NO_BREAK, " ") for text in plain] == [
        "71.6",
        "1,234",
        "0.0456",
        "32.1 ms",
        "2.50 min",
        "2.03 h",
    ]
    assert [percent(x, signed=True).replace(NO_BREAK, " ") for x in (0.004, -0.123, 0.0)] == [
        "+0.4 %",
        "−12 %",
        "0 %",
    ]
    assert names(["a", "b", "c", "d"], 2) == "a, b and 2 more"


def test_data_can_not_leave_its_script_element() -> None:
    value = {"text": "</script><!--<script>alert(1)</script>\u2028&"}
    text = str(inert_json(value))
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == value


def test_names_are_kept_whole_and_markup_in_them_stays_text() -> None:
    assert str(unbroken("serve kv-q8, <b>")) == 'serve <span class="word">kv-q8,</span> &lt;b&gt;'


def test_the_bundle_is_made_once_and_a_cache_that_cannot_be_written_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda *_, **__: "bundle")
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    monkeypatch.setenv("PIVOTBENCH_CACHE", str(in_the_way))
    assert vega.__wrapped__() == "bundle"
    monkeypatch.setenv("PIVOTBENCH_CACHE", str(tmp_path / "cache"))
    assert vega.__wrapped__() == "bundle"
    monkeypatch.delattr(vl_convert, "javascript_bundle")
    assert vega.__wrapped__() == "bundle"


def test_an_interval_of_few_launches_does_not_push_the_rest_out_of_sight() -> None:
    reach = Reach.of([9.0, 11.0], [(0.01, 25_000_000.0), (8.5, 12.0), None])
    assert (reach.low, reach.high) == (5.0, 15.0)
    assert reach.within((0.01, 25_000_000.0)) == (5.0, 15.0)
    assert reach.within((8.5, 12.0)) == (8.5, 12.0)
    assert reach.within(None) == (None, None)
    assert "are cut" in reach.note


def test_an_interval_that_fits_is_drawn_whole_and_said_nothing_of() -> None:
    reach = Reach.of([9.0, 11.0], [(7.0, 12.0)])
    assert (reach.low, reach.high, reach.note) == (7.0, 12.0, "")
    alone = Reach.of([10.0], [(1.0, 90.0)])
    assert (alone.low, alone.high) == (1.0, 30.0)


def test_beyond_tenfold_a_bound_is_a_word() -> None:
    assert percent_interval((0.2, 253_512.0)) == f"\u221280{NO_BREAK}% to over +900{NO_BREAK}%"
    assert percent_interval((0.97, 1.07)) == f"\u22123{NO_BREAK}% to +7{NO_BREAK}%"

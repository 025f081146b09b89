"""The page of a comparison says what changed first, names every change, and is one file that runs nothing."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from comparison_sample import comparison
from pivotbench.changes.page import render
from pivotbench.changes.story import facts, story
from pivotbench.changes.threats import threats
from pivotbench.charts.changes import by_load_finding, change_charts, changes_finding
from pivotbench.charts.layout import MOST_ROWS
from pivotbench.figures import NO_BREAK
from report_sample import addresses, elements

ATTACK = "<script>window.stolen = true</script>"
SECTIONS = [
    *("speed", "loads", "outcomes", "answers"),
    *("flags", "environment", "study"),
    *("threats", "changelog"),
]


@pytest.fixture(scope="module")
def upgrade(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return comparison(tmp_path_factory.mktemp("upgrade"), ATTACK)


@pytest.fixture(scope="module")
def page(upgrade: dict[str, Any]) -> str:
    return render(upgrade)


def changed(found: dict[str, Any], **winner: Any) -> dict[str, Any]:
    """The comparison with other winners, or with another verdict on them."""
    other = copy.deepcopy(found)
    speed = {key: winner.pop(key) for key in ("verdict", "reason", "rounds_needed") if key in winner}
    other["winner"] |= winner
    if other["winner"]["speed"]:
        other["winner"]["speed"] |= speed
    other["gate"] = {"passed": True, "reasons": []}
    return other


def said(text: str) -> str:
    return text.replace(NO_BREAK, " ")


def codes(found: dict[str, Any]) -> set[str]:
    return {row["code"] for row in threats(found)}


def test_the_headline_is_what_the_winner_gives_now(upgrade: dict[str, Any]) -> None:
    told = story(upgrade)
    assert said(told.headline) == "flash-on+ngram-simple is 28 % faster than before"
    assert said(told.sentences[0]).startswith("flash-on+ngram-simple gives 142 tok/s where it gave 111: +2")
    assert said(told.sentences[1]).endswith("no-repack broke; kv-q8-no-flash was mended.")


def test_what_the_gate_would_stop_is_said_on_top_with_its_reason(upgrade: dict[str, Any]) -> None:
    told = story(upgrade)
    assert (told.tone, said(told.verdict)) == ("bad", "The gate would stop this, for 1 reason")
    assert told.sentences[2].startswith("Against it: no-repack worked and is eliminated")


@pytest.mark.parametrize(
    ("winner", "tone", "headline"),
    [
        ({"verdict": "slower"}, "good", "flash-on+ngram-simple is 28 % slower than before"),
        ({"verdict": "equivalent"}, "good", "flash-on+ngram-simple is as fast as before, within 10 %"),
        ({"verdict": "undecided"}, "open", "Undecided whether flash-on+ngram-simple is as fast as before"),
        (
            {"verdict": "not_comparable"},
            "open",
            "flash-on+ngram-simple cannot be held against its old self",
        ),
        ({"old": "x", "verdict": "faster"}, "good", "flash-on+ngram-simple is 28 % faster than x was"),
        ({"old": "x", "speed": None}, "open", "flash-on+ngram-simple wins now, x won before"),
        ({"old": None, "speed": None}, "open", "flash-on+ngram-simple can be served; before, nothing could"),
        ({"new": None, "speed": None}, "open", "No winner any more; it was flash-on+ngram-simple"),
        ({"old": None, "new": None, "speed": None}, "open", "Neither folder has a winner"),
    ],
)
def test_every_outcome_has_its_headline_and_what_is_open_is_not_called_good(
    upgrade: dict[str, Any], winner: dict[str, Any], tone: str, headline: str
) -> None:
    told = story(changed(upgrade, **winner))
    assert (told.tone, said(told.headline)) == (tone, headline)


def test_the_first_figures_are_speed_change_confidence_count_and_answers(upgrade: dict[str, Any]) -> None:
    values = {fact.name: said(fact.value) for fact in facts(upgrade)}
    assert values == {
        "The winner's speed": "142 tok/s",
        "Its change": "+28 %",
        "Confidence": "95 %",
        "Compared": "6",
        "Same answers": "5 of 6",
    }


def test_chart_titles_state_who_moved_and_who_stayed(upgrade: dict[str, Any]) -> None:
    title = said(changes_finding(upgrade))
    assert title.startswith("flash-off (−38 %) is slower; flash-on (+29 %), flash-on+none (+28 %) and 2 more")
    assert title.endswith("kv-q8 stayed within 10 %")
    assert by_load_finding(upgrade) == "flash-on+ngram-simple: faster at all 4 loads"


@pytest.mark.parametrize(
    ("verdict", "title"),
    [
        ("equivalent", "All 6 are as fast as before, within 10 %"),
        ("undecided", "Undecided of all 6 whether their speed has changed"),
        ("not_comparable", "Nothing can be compared: other work was sent"),
    ],
)
def test_one_verdict_on_all_is_one_short_title(upgrade: dict[str, Any], verdict: str, title: str) -> None:
    alike = copy.deepcopy(upgrade)
    for row in alike["speeds"]:
        row["verdict"] = verdict
    assert said(changes_finding(alike)) == title


def test_other_hosts_are_a_threat_and_so_is_a_change_without_any_cause(upgrade: dict[str, Any]) -> None:
    assert codes(upgrade) == {"other_host", "settings"}
    same = upgrade | {"environment": []}
    assert codes(same) == {"other_time", "settings"}
    both = [{"what": what, "old": "1", "new": "2"} for what in ("driver", "engine version", "gpus")]
    assert codes(upgrade | {"environment": both}) == {"several_causes", "other_hardware", "settings"}


def test_the_engines_own_package_is_no_second_cause(upgrade: dict[str, Any]) -> None:
    engine = {"what": "engine version", "old": "1", "new": "2"}
    own = upgrade | {"environment": [engine, engine | {"what": "package sglang"}]}
    assert "several_causes" not in codes(own)
    torch = {"what": "package torch", "old": "2.8", "new": "2.9"}
    assert "several_causes" in codes(upgrade | {"environment": [engine, torch]})


def test_what_moved_all_alike_single_rounds_and_hot_hardware_are_threats(upgrade: dict[str, Any]) -> None:
    other = copy.deepcopy(upgrade)
    other["together"] = {"configurations": 6, "ratio": 1.2, "lowest": 1.1, "highest": 1.3}
    other["speeds"][0] |= {"new_rounds": 1, "confounders": ["throttled: no | yes"]}
    other["speeds"][1] |= {"verdict": "not_comparable", "reason": "other work was sent: chat: stop a | b"}
    assert codes(other) == {"other_host", "settings", "together", "few_rounds", "conditions", "other_work"}


def test_every_section_is_there_and_every_line_of_the_changelog(upgrade: dict[str, Any], page: str) -> None:
    found = [attributes.get("id") for tag, attributes in elements(page) if tag == "section"]
    assert [id_ for id_ in found if id_] == SECTIONS
    assert page.count("<li>", page.index('id="changelog"')) == len(upgrade["changelog"]) + 1  # the gate's
    for shown in ("other-host", "chunked_prefill_size", "8192 | 2048", "flag conflict"):
        assert shown in page


def test_the_page_is_one_file_in_which_text_stays_text(page: str) -> None:
    assert addresses(page) == []
    assert "window.stolen" in page
    assert "<script>window.stolen" not in page


def test_a_hundred_configurations_stay_legible_and_small(upgrade: dict[str, Any]) -> None:
    many = copy.deepcopy(upgrade)
    for part in ("speeds", "configurations", "answers", "speeds_by_load"):
        row = many[part][0]
        many[part] = [row | {"configuration": f"backend-{place:03d}"} for place in range(100)]
    chart = change_charts(many)["changes"].to_dict()
    assert f"The {MOST_ROWS} of 100 that changed most are shown" in chart["usermeta"]["caption"]
    assert len(render(many).encode()) < 2_000_000


def test_without_a_configuration_in_both_folders_the_page_says_so(upgrade: dict[str, Any]) -> None:
    nothing = upgrade | {"speeds": [], "speeds_by_load": [], "answers": [], "together": None}
    nothing["winner"] = upgrade["winner"] | {"speed": None}
    page = render(nothing)
    assert "No configuration has a value of the metric in both folders" in page
    assert 'data-chart="' not in page

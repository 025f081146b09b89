"""summary.md as CommonMark with GitHub's tables renders it: nothing that was measured or said is markup."""

from __future__ import annotations

import copy
import json
import shlex
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from pivotbench.summary.markdown import table, text
from pivotbench.summary.text import command_lines, summary_markdown
from report_sample import Sample, sample

GITHUB = MarkdownIt("commonmark").enable("table").enable("strikethrough")
HOSTILE = (
    "a|b",
    "ends with \\",
    "\\| `x",
    "`a|b` and `c`",
    "\\`<script>\\`",
    "``<b>`` ` <i>",
    "__global__ *ptr* ~~no~~ snake_case _a_",
    "[x](http://x) ![y](http://y) [z]: http://z",
    "&lt;b&gt; &amp;",
    "# heading",
    "1. item",
    "> quoted",
    "---",
    "+ more",
)


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """A decision with every section."""
    return sample(tmp_path_factory.mktemp("sample"))


def cells(markdown: str) -> list[list[str]]:
    """The rows of all tables as rendered: the text of each cell."""
    rows: list[list[str]] = []
    tokens = GITHUB.parse(markdown)
    for before, token in pairwise(tokens):
        if before.type == "tr_open":
            rows.append([])
        if before.type in ("td_open", "th_open"):
            rows[-1].append(shown(token))
    return rows


def shown(inline: Token) -> str:
    """What a reader sees of one line."""
    return "".join(child.content for child in inline.children or ())


def marks(markdown: str) -> set[str]:
    """The kinds of markup in a document, code aside."""
    inline = [child.type for token in GITHUB.parse(markdown) for child in token.children or ()]
    return {kind for kind in inline if kind not in ("text", "text_special", "code_inline")}


@pytest.mark.parametrize("said", HOSTILE)
def test_a_text_stays_the_text_of_one_cell(said: str) -> None:
    row = f"| {text(said)} | second |"
    assert cells(table(["one", "two"], [row]))[1] == [plain(said), "second"]
    assert not marks(text(said))


@pytest.mark.parametrize("said", HOSTILE)
def test_a_text_begins_no_block_where_a_line_begins(said: str) -> None:
    for line in (text(said), f"- {text(said)}"):
        kinds = [token.type for token in GITHUB.parse(line)]
        assert kinds.count("paragraph_open") == 1 and kinds.count("list_item_open") == line.startswith("- ")


@given(st.text(st.sampled_from("ab|\\`*_~[]()<>&!#-+1. "), max_size=24))
def test_no_text_is_markup(said: str) -> None:
    assert cells(table(["one", "two"], [f"| {text(said)} | second |"]))[1] == [plain(said), "second"]
    assert not marks(f"before {text(said)}")


def plain(said: str) -> str:
    """What is to be seen: backticks that pair are code, everything else stands as it is."""
    tokens = GITHUB.parseInline(text(said))[0].children or []
    seen = "".join(t.markup + t.content + t.markup if t.type == "code_inline" else t.content for t in tokens)
    assert "".join(seen.split()) == "".join(said.split())
    return "".join(token.content for token in tokens)


def hostile(value: Any) -> Any:
    """The same value with a hostile text behind every sentence."""
    if isinstance(value, dict):
        return {key: part if key == "links" else hostile(part) for key, part in value.items()}
    if isinstance(value, list):
        return [hostile(part) for part in value]
    return f"{value} {' '.join(HOSTILE)}" if isinstance(value, str) and " " in value else value


def test_hostile_sentences_change_no_table_and_no_section(usual: Sample) -> None:
    decision = hostile(copy.deepcopy(usual.decision)) | {"model": "a|b_*c*", "launch_command": "x `y`\n```\n"}
    there, here = summary_markdown(usual.decision), summary_markdown(decision)
    assert [len(row) for row in cells(here)] == [len(row) for row in cells(there)]
    headings = [[t.tag for t in GITHUB.parse(each) if t.type == "heading_open"] for each in (here, there)]
    assert headings[0] == headings[1]
    assert marks(here) == marks(there)


def test_a_hostile_name_stays_in_its_cell(usual: Sample) -> None:
    names = ("flash-on", "kv-q8", "repetitive", "SmolLM2-135M-Instruct", "Example CPU")
    written = json.dumps(usual.decision)
    for name in names:
        written = written.replace(name, json.dumps(f"{name}|_`*[x](y)<b>")[1:-1])
    there, here = summary_markdown(usual.decision), summary_markdown(json.loads(written))
    assert [len(row) for row in cells(here)] == [len(row) for row in cells(there)]
    assert marks(here) == marks(there)
    assert [row[0] for row in cells(here) if row[0].startswith("kv-q8")][:1] == ["kv-q8|_`*[x](y)<b>"]


def test_the_decision_stands_before_what_it_rests_on(usual: Sample) -> None:
    summary = summary_markdown(usual.decision)
    order = ("**flash-on leads", "```sh", "## Ranking", "## Speculation", "## Eliminated", "## Next levers")
    places = [summary.index(part) for part in (*order, "## More", "<details>")]
    assert places == sorted(places)
    sentences = summary.split("\n\n")[1]
    assert "Of 6 backends 2 failed: kv-q4, kv-q8-no-flash. Speculation pays on repetitive" in sentences
    assert summary.count("<details>") == summary.count("\n</details>\n") >= 6


def test_no_table_is_wider_than_a_page(usual: Sample) -> None:
    assert max(len(row) for row in cells(summary_markdown(usual.decision))) <= 8


def test_a_long_command_stands_with_a_flag_a_line_and_is_the_same_command() -> None:
    command = shlex.join(
        ["python", "-m", "server", "--model", "/m/with space", "--json", '{"a": "b --c"}'] * 3
    )
    lines = command_lines(command)
    assert lines.count("\n") > 4 and max(map(len, lines.splitlines())) < 60
    assert shlex.split(lines.replace("\\\n", "")) == shlex.split(command)
    assert command_lines("python -m server --port 1") == "python -m server --port 1"


def test_links_of_a_failure_are_links(usual: Sample) -> None:
    assert "link_open" in marks(summary_markdown(usual.decision))

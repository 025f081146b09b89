"""A prompt file is refused with its line, before anything starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from study_samples import RIGHT, changed, write_study

from pivotbench.errors import UserError
from pivotbench.prompt_files import read_prompts
from pivotbench.study import load_study, source

GOOD = '{"id": "a", "prompt": "Say a."}\n'

WRONG = [
    ("not JSON", GOOD + "{id: b}\n", 2, "not valid JSON"),
    ("cut off", '{"id": "a", "prompt": "x\n', 1, "not valid JSON"),
    ("a list", "[1]\n", 1, "not an object"),
    ("no id", '{"prompt": "x"}\n', 1, "id: must be text"),
    ("number as id", '{"id": 1, "prompt": "x"}\n', 1, "id: must be text"),
    ("misspelt", '{"id": "a", "promt": "x"}\n', 1, "did you mean 'prompt'?"),
    ("neither", '{"id": "a"}\n', 1, "either prompt or messages or turns"),
    ("both", '{"id": "a", "prompt": "x", "messages": []}\n', 1, "either prompt or messages or turns"),
    ("blank", '{"id": "a", "prompt": " "}\n', 1, "not blank"),
    ("id twice", GOOD + "\n" + '{"id": "a", "prompt": "y"}\n', 3, "the same id as line 1"),
    ("prompt twice", GOOD + '{"id": "b", "prompt": "Say a."}\n', 2, "the same prompt as line 1"),
    ("no messages", '{"id": "a", "messages": []}\n', 1, "at least one"),
    ("role", '{"id": "a", "messages": [{"role": "bot", "content": "x"}]}\n', 1, "a role is system, user"),
    ("role a list", '{"id": "a", "messages": [{"role": [], "content": "x"}]}\n', 1, "a role is system, user"),
    ("no content", '{"id": "a", "messages": [{"role": "user"}]}\n', 1, "role and content"),
    ("blank content", '{"id": "a", "messages": [{"role": "user", "content": ""}]}\n', 1, "not blank"),
    ("no turns", '{"id": "a", "turns": []}\n', 1, "at least one text"),
    ("turns a text", GOOD + '{"id": "b", "turns": "x"}\n', 2, "turns: must be a list"),
    ("a blank turn", GOOD + '{"id": "b", "turns": ["x", " "]}\n', 2, "turns: each must be text"),
    ("a turn a number", '{"id": "a", "turns": ["x", 1]}\n', 1, "turns: each must be text"),
    ("system alone", '{"id": "a", "system": "s", "prompt": "x"}\n', 1, "system: belongs to turns"),
    ("blank system", '{"id": "a", "system": "", "turns": ["x"]}\n', 1, "system: must be text"),
    ("turns twice", '{"id": "a", "turns": ["x"]}\n{"id": "b", "turns": ["x"]}\n', 2, "same prompt as line 1"),
    ("half a character", GOOD + r'{"id": "b", "prompt": "cut \ud83d here"}' + "\n", 2, "half a character"),
    ("half a character as id", r'{"id": "\ud83d", "prompt": "x"}' + "\n", 1, "half a character"),
    ("half in a turn", r'{"id": "a", "turns": ["x", "\ude00"]}' + "\n", 1, "half a character"),
    ("half a key", r'{"id": "a", "prompt": "x", "\ud83d": 1}' + "\n", 1, "half a character"),
    ("empty", "", 1, "holds no prompt"),
    ("blank lines", "\n\n", 1, "holds no prompt"),
    ("nested", '{"id": "a", "prompt": ' + "[" * 100_000 + "\n", 1, "not valid JSON"),
]


@pytest.mark.parametrize(("text", "line", "words"), [c[1:] for c in WRONG], ids=[c[0] for c in WRONG])
def test_a_wrong_prompt_is_refused_with_its_line(tmp_path: Path, text: str, line: int, words: str) -> None:
    study = write_study(tmp_path, prompts=text)
    with pytest.raises(UserError) as caught:
        load_study(study)
    assert str(caught.value).startswith(f"{tmp_path / 'free.jsonl'}:{line}: ")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_prompt_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    (tmp_path / "free.jsonl").write_bytes(GOOD.encode() + b"\xff\n")
    with pytest.raises(UserError, match=r"free\.jsonl:2: not UTF-8"):
        load_study(study)


def test_the_file_is_named_as_the_study_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_study(tmp_path, RIGHT, prompts="x\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"^free\.jsonl:1: "):
        load_study(Path("study.yaml"))


def test_an_escaped_pair_of_halves_is_a_character(tmp_path: Path) -> None:
    file = tmp_path / "p.jsonl"
    file.write_text(r'{"id": "a", "prompt": "\ud83d\ude00"}')
    assert read_prompts(file)[0]["prompt"] == "\N{GRINNING FACE}"


@pytest.mark.parametrize("loader", [yaml.SafeLoader, source._LOADER])
@pytest.mark.parametrize("line", [r'{ask: "cut \ud83d here"}', r'{ask: "2+2?", contains: "\ude00"}'])
def test_half_a_character_in_a_smoke_prompt_is_refused_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loader: Any, line: str
) -> None:
    monkeypatch.setattr(source, "_LOADER", loader)
    study = write_study(tmp_path, changed('{ask: "Name a colour."}', line))
    with pytest.raises(UserError, match=r"study\.yaml:16: .*(half a character|invalid Unicode)"):
        load_study(study)


def test_unicode_line_separators_do_not_end_a_line(tmp_path: Path) -> None:
    file = tmp_path / "p.jsonl"
    file.write_text('{"id": "a", "prompt": "one\u2028two"}\n', encoding="utf-8")
    assert len(read_prompts(file)) == 1


def test_conversations_of_several_turns_are_right_but_not_at_a_rate(tmp_path: Path) -> None:
    file = tmp_path / "p.jsonl"
    file.write_text('{"id": "a", "turns": ["x"]}\n{"id": "b", "system": "s", "turns": ["x", "y"]}\n')
    assert len(read_prompts(file)) == 2
    with pytest.raises(UserError, match=r"p\.jsonl:2: turns: .* give concurrency alone"):
        read_prompts(file, file, conversations=False)

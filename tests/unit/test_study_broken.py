"""A wrong study is refused in one line that names the file, the line, the key and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from broken_studies import BROKEN, HERE
from study_samples import changed, write_study

from pivotbench.errors import UserError
from pivotbench.study import load_study


@pytest.mark.parametrize(
    ("text", "key", "words"), [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN]
)
def test_a_broken_study_is_refused_with_file_line_and_key(
    tmp_path: Path, text: str, key: str, words: str
) -> None:
    file = write_study(tmp_path, text)
    line = 1 + [HERE in row for row in text.splitlines()].index(True)
    with pytest.raises(UserError) as caught:
        load_study(file)
    message = str(caught.value)
    assert message.startswith(f"{file}:{line}: {key}: "), message
    assert words in message
    assert "\n" not in message
    assert len(message.removeprefix(str(file))) < 300


NOT_STUDIES = [
    ("empty", b"", 1, "is empty"),
    ("comments only", b"# nothing\n\n", 1, "is empty"),
    ("a list", b"- a\n- b\n", 1, "mapping"),
    ("a word", b"\nstudy\n", 2, "mapping"),
    ("not UTF-8", b"name: a\nengine: \xff\n", 2, "UTF-8"),
    ("unclosed", b"name: a\nserve: {a: 1\nmodel: x\n", 3, "not valid YAML"),
    ("tab", b"name: a\nserve:\n\tthreads: 1\n", 3, "tab"),
    ("two documents", b"name: a\n---\nname: b\n", 2, "one document"),
    ("control character", b"name: a\x07\n", 1, "not valid YAML"),
    ("unknown alias", b"name: *a\n", 1, "alias"),
    ("brackets", b"[" * 5000, 1, "nest"),
]


@pytest.mark.parametrize(
    ("data", "line", "words"), [c[1:] for c in NOT_STUDIES], ids=[c[0] for c in NOT_STUDIES]
)
def test_a_file_that_is_no_study_is_refused(tmp_path: Path, data: bytes, line: int, words: str) -> None:
    file = tmp_path / "study.yaml"
    file.write_bytes(data)
    with pytest.raises(UserError) as caught:
        load_study(file)
    assert str(caught.value).startswith(f"{file}:{line}: ")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such study file"):
        load_study(tmp_path / "absent.yaml")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        load_study(tmp_path)


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    with file.open("wb") as stream:
        stream.truncate(1 << 33)
    with pytest.raises(UserError, match="too large"):
        load_study(file)


def test_aliases_cannot_multiply_without_end(tmp_path: Path) -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    for level in range(1, 10):
        bomb += f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n"
    with pytest.raises(UserError, match="at most 100,000 values"):
        load_study(write_study(tmp_path, bomb))


def test_the_misspelt_key_is_named_rather_than_the_one_it_leaves_missing(tmp_path: Path) -> None:
    text = changed("engine: llamacpp", "engin: llamacpp")
    with pytest.raises(UserError, match=r"study.yaml:2: engin: unknown key; did you mean 'engine'\?"):
        load_study(write_study(tmp_path, text))


def test_of_several_problems_the_first_in_the_file_is_named(tmp_path: Path) -> None:
    text = changed("margin: 0.1", "margin: 7").replace("max_tokens: 8", "max_tokens: 0")
    with pytest.raises(UserError, match=r"smoke\.max_tokens"):
        load_study(write_study(tmp_path, text))

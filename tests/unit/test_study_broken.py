"""A wrong study is refused in one line that names the file, the line, the key and what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from broken_studies import BROKEN, HERE
from hostile_studies import HOSTILE, PROMPT_FILES
from study_samples import changed, write_study

from pivotbench.errors import UserError
from pivotbench.study import load_study

ALL = [*BROKEN, *HOSTILE]


@pytest.mark.parametrize(("text", "key", "words"), [case[1:] for case in ALL], ids=[case[0] for case in ALL])
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
    assert message.isprintable()
    assert len(message.removeprefix(str(file))) < 340


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
    ("megabytes of brackets", b"[" * (4 << 20), 1, "nest"),
    ("megabytes of dashes", b"- " * (2 << 20), 1, "nest"),
    ("UTF-16", "name: a".encode("utf-16"), 1, "UTF-8"),
    ("null byte", b"name: a\x00\n", 1, "not valid YAML"),
    ("only a byte order mark", b"\xef\xbb\xbf", 1, "is empty"),
    ("half a character", b'name: "\\ud83d"\n', 1, "Unicode character"),
    ("unclosed quote", b'name: "a\n', 2, "not valid YAML"),
    ("wrong indent", b"name: a\n  engine: b\n", 2, "not valid YAML"),
    ("JSON with a comma too many", b'{"name": "a",,}', 1, "not valid YAML"),
    ("a number", b"7\n", 1, "mapping"),
    ("HTML", b"<html></html>\n", 1, "mapping"),
    ("tag directive", b"%TAG ! tag:evil,2000:\n--- !x\nname: a\n", 2, "tag"),
    ("a million values", b"a: [" + b"x," * 1_000_000 + b"]", 1, "at most 100,000 values"),
    ("a million keys", b"".join(b"k%d: 1\n" % n for n in range(300_000)), 150_000, "at most 100,000 values"),
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


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    file = write_study(tmp_path)
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert load_study(file).name == "sample"


@pytest.mark.parametrize(
    ("data", "line", "words"), [c[1:] for c in PROMPT_FILES], ids=[c[0] for c in PROMPT_FILES]
)
def test_a_broken_prompt_file_is_refused_with_its_line(
    tmp_path: Path, data: bytes, line: int, words: str
) -> None:
    file = write_study(tmp_path)
    (tmp_path / "free.jsonl").write_bytes(data)
    with pytest.raises(UserError) as caught:
        load_study(file)
    assert f"free.jsonl:{line}: " in str(caught.value)
    assert words in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_a_study_that_is_no_file_is_refused_unread(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "study.yaml")
    with pytest.raises(UserError, match="not a file but a device or pipe"):
        load_study(tmp_path / "study.yaml")


def test_a_study_in_a_circle_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").symlink_to("study.yaml")
    with pytest.raises(UserError, match="cannot be read"):
        load_study(tmp_path / "study.yaml")


# A process that may use 512 MiB of address space: what would take more ends in a MemoryError instead.
BOUNDED = """
import resource, sys
from pathlib import Path
sys.path[:0] = sys.argv[2:]
from pivotbench.errors import UserError
from pivotbench.study import load_study
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (192 << 20),) * 2)
try:
    load_study(Path(sys.argv[1]))
except UserError as error:
    print(error)
"""
BOMBS = {
    "values": "a: [" + "x," * 2_000_000 + "]",
    "keys": "".join(f"k{n}: 1\n" for n in range(300_000)),
    "anchors": "".join(f"a{n}: &a{n} x\n" for n in range(200_000)),
    "aliases": "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60)),
    "matrix": changed("  plain: {}", "  matrix: {" + ", ".join(f"f{n}: [a, b]" for n in range(5000)) + "}"),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_what_would_fill_the_memory_is_refused_in_little_of_it(tmp_path: Path, bomb: str) -> None:
    file = write_study(tmp_path, BOMBS[bomb])
    paths = [path for path in sys.path if path]
    done = subprocess.run(
        [sys.executable, "-c", BOUNDED, str(file), *paths], capture_output=True, text=True, timeout=120
    )
    assert done.stdout.startswith(f"{file}:"), done.stderr
    assert done.stdout.count("\n") == 1

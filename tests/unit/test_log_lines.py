"""A log of any size is read in one pass that shows what may matter."""

from __future__ import annotations

from pathlib import Path

import pytest

from pivotbench.diagnosis.log_lines import LAST_LINES, OFTEN, suspicious_lines

WORDS = ("error",)


def read(tmp_path: Path, content: bytes) -> list[tuple[int, str]]:
    log = tmp_path / "server.log"
    log.write_bytes(content)
    return list(suspicious_lines(log, WORDS))


def test_lines_with_a_word_are_shown_with_their_numbers_and_the_last_lines_too(tmp_path: Path) -> None:
    lines = [f"line {'abcdefghij'[i % 10]}" for i in range(40)]
    lines[3] = "An Error of any case"
    found = read(tmp_path, "\n".join(lines).encode())
    assert found[0] == (3, "An Error of any case")
    assert [number for number, _ in found[1:]] == list(range(40 - LAST_LINES, 40))


def test_a_line_is_shown_once_even_where_it_is_suspicious_and_last(tmp_path: Path) -> None:
    assert read(tmp_path, b"good\nan error\n") == [(1, "an error")]


def test_of_lines_that_differ_in_digits_alone_not_all_are_shown(tmp_path: Path) -> None:
    found = read(tmp_path, b"".join(b"error %d\n" % i for i in range(3 * OFTEN)))
    assert len(found) == OFTEN + LAST_LINES
    found = read(tmp_path, b"".join(b"step %d\n" % i for i in range(9999)) + b"error 1\n" + b"step 0\n" * 99)
    assert found[0] == (9999, "error 1")


@pytest.mark.parametrize("size", [1 << 18, (1 << 18) - 7, (1 << 20) + 1])
def test_lines_across_blocks_and_endless_lines_are_found(tmp_path: Path, size: int) -> None:
    found = read(tmp_path, b"error " + b"x" * size + b"\n" + b"fine\n" * 9 + b"error last")
    assert found[0][1].startswith("error x")
    assert len(found[0][1]) <= 1 << 16
    assert found[-1][1] == "error last"


def test_colours_go_and_what_a_progress_bar_overwrote_is_a_line_of_its_own(tmp_path: Path) -> None:
    found = read(tmp_path, b"Loading 10 %\rLoading 20 %\r\x1b[31merror: \xff broke\x1b[0m\r\n")
    assert found[0] == (2, "error: � broke")


def test_a_log_that_is_not_there_has_no_lines(tmp_path: Path) -> None:
    assert list(suspicious_lines(tmp_path / "none.log", WORDS)) == []

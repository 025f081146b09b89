"""JSON lines (jsonlines.org): a file with one object a line, refused with file and line where it is none."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pivotbench.errors import UserError
from pivotbench.wording import quoted, suggestion

HALF_CHARACTER = "holds half a character (a lone surrogate such as \\ud83d); write the whole one"


def read_objects(
    file: Path, shown: Path, *, keys: Sequence[str], example: str, max_bytes: int, too_large: str
) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Give each object of a file with its line's number and ``SHOWN:NUMBER``; blank lines are left out.

    Raises UserError that names the file (as ``shown``) for one that cannot be read or is larger than
    ``max_bytes`` (saying ``too_large``), and the line for one that is no object, has a key that is none of
    ``keys``, or text that UTF-8 cannot hold.
    """
    for number, line in enumerate(_text(file, shown, max_bytes, too_large).split("\n"), start=1):
        if line.strip():
            where = f"{shown}:{number}"
            yield number, where, _object(line, where, keys, example)


def is_unicode(text: str) -> bool:
    """Return whether UTF-8 can hold a text, which half of a surrogate pair prevents."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _text(file: Path, shown: Path, max_bytes: int, too_large: str) -> str:
    try:
        if file.stat().st_size > max_bytes:
            raise UserError(f"{shown}: {too_large}")
        data = file.read_bytes()
    except OSError as error:
        raise UserError(f"{shown}: cannot be read: {error.strerror}") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(f"{shown}:{line}: not UTF-8 text; save the file as UTF-8") from None


class _GivenTwice(Exception):
    """A key that an object has twice."""


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for key, value in pairs:
        if key in data:
            raise _GivenTwice(key)
        data[key] = value
    return data


def _object(line: str, where: str, keys: Sequence[str], example: str) -> dict[str, Any]:
    try:
        data = json.loads(line, object_pairs_hook=_each_key_once)
        written = json.dumps(data, ensure_ascii=False)
    except _GivenTwice as error:
        raise UserError(f"{where}: {quoted(str(error))}: given twice; keep one") from None
    except (ValueError, RecursionError) as error:
        problem = getattr(error, "msg", "cannot be parsed")
        raise UserError(f"{where}: not valid JSON: {problem}; write one object a line") from None
    if not isinstance(data, dict):
        raise UserError(f"{where}: not an object; write {example}")
    if not is_unicode(written):
        raise UserError(f"{where}: {HALF_CHARACTER}")
    for key in data:
        if key not in keys:
            raise UserError(f"{where}: {quoted(key)}: unknown key; {suggestion(key, keys)}")
    return data

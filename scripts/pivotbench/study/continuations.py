"""Whether a file of continuations can be used: one JSON object a line, with an id, a prompt, what follows.

A line is ``{"id": "...", "prompt": "The sun rises in the", "continuation": " east and sets in the west."}``.
They are put to every launch as they stand, so there are few of them and they are short.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pivotbench.errors import UserError
from pivotbench.study.wording import quoted, suggestion

# All of it is handed to the smoke stage on its command line.
MAX_BYTES = 16 << 10
_KEYS = ("id", "prompt", "continuation")


def read_continuations(file: Path, shown: Path | None = None) -> list[dict[str, str]]:
    """Return the continuations in ``file``, in order.

    Raises UserError that names the file (as ``shown``) and line of the first line that is none, of an id used
    twice, and for a file that is empty or above 16 KiB.
    """
    shown = shown or file
    found: list[dict[str, str]] = []
    lines: dict[str, int] = {}
    for number, line in enumerate(_lines(file, shown), start=1):
        if not line.strip():
            continue
        where = f"{shown}:{number}"
        entry = _entry(line, where)
        if entry["id"] in lines:
            raise UserError(f"{where}: the same id as line {lines[entry['id']]}; give each its own")
        lines[entry["id"]] = number
        found.append(entry)
    if not found:
        raise UserError(f"{shown}:1: holds no continuation; write one JSON object a line")
    return found


def _lines(file: Path, shown: Path) -> list[str]:
    try:
        if file.stat().st_size > MAX_BYTES:
            raise UserError(f"{shown}: larger than {MAX_BYTES >> 10} KiB; a few short ones are enough")
        return file.read_text(encoding="utf-8-sig").split("\n")
    except OSError as error:
        raise UserError(f"{shown}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{shown}: not UTF-8 text; save the file as UTF-8") from None


def _entry(line: str, where: str) -> dict[str, str]:
    try:
        data: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        problem = getattr(error, "msg", "cannot be parsed")
        raise UserError(f"{where}: not valid JSON: {problem}; write one object a line") from None
    if not isinstance(data, dict):
        raise UserError(f'{where}: not an object; write {{"id": ..., "prompt": ..., "continuation": ...}}')
    for key in data:
        if key not in _KEYS:
            raise UserError(f"{where}: {quoted(key)}: unknown key; {suggestion(key, _KEYS)}")
    for key in _KEYS:
        if not isinstance(data.get(key), str) or not data[key].strip():
            raise UserError(f"{where}: {key}: must be text that is not blank")
    return {key: data[key] for key in _KEYS}

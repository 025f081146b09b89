"""Files of continuations: one JSON object a line, with an id, a prompt, and what follows.

A line is ``{"id": "...", "prompt": "The sun rises in the", "continuation": " east and sets in the west."}``.
They are put to every launch as they stand, so there are few of them and they are short.
"""

from __future__ import annotations

from pathlib import Path

from pivotbench.errors import UserError
from pivotbench.json_lines import read_objects

# All of it is handed to the smoke stage on its command line.
MAX_BYTES = 16 << 10
_KEYS = ("id", "prompt", "continuation")
_EXAMPLE = '{"id": ..., "prompt": ..., "continuation": ...}'


def read_continuations(file: Path, shown: Path | None = None) -> list[dict[str, str]]:
    """Return the continuations in ``file``, in order.

    Raises UserError that names the file (as ``shown``) and line of the first line that is none, of an id used
    twice, and for a file that is empty or above 16 KiB.
    """
    shown = shown or file
    found: list[dict[str, str]] = []
    lines: dict[str, int] = {}
    for number, where, entry in read_objects(
        file,
        shown,
        keys=_KEYS,
        example=_EXAMPLE,
        max_bytes=MAX_BYTES,
        too_large=f"larger than {MAX_BYTES >> 10} KiB; a few short ones are enough",
    ):
        for key in _KEYS:
            if key not in entry:
                raise UserError(f"{where}: {key}: is missing; write {_EXAMPLE}")
            if not isinstance(entry[key], str) or not entry[key].strip():
                raise UserError(f"{where}: {key}: must be text that is not blank")
        if entry["id"] in lines:
            raise UserError(f"{where}: the same id as line {lines[entry['id']]}; give each its own")
        lines[entry["id"]] = number
        found.append(entry)
    if not found:
        raise UserError(f"{shown}:1: holds no continuation; write a line such as {_EXAMPLE}")
    return found

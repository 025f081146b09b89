"""Prompt files: one JSON object a line, each with an id and something to say.

A line is ``{"id": "...", "prompt": "..."}``, or ``{"id": "...", "messages": [{"role": "user", "content":
"..."}]}`` for a conversation that has one answer left to give, or ``{"id": "...", "turns": ["...", "..."]}``,
with ``"system": "..."`` where wanted, for one whose every user text is answered before the next is sent.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pivotbench.errors import UserError
from pivotbench.json_lines import read_objects
from pivotbench.wording import quoted

MAX_BYTES = 64 << 20
_SHAPES = ("prompt", "messages", "turns")
_KEYS = ("id", *_SHAPES, "system")
_ROLES = ("system", "user", "assistant")


def read_prompts(
    file: Path, shown: Path | None = None, *, conversations: bool = True
) -> list[dict[str, Any]]:
    """Return the prompts in ``file``, in order; without ``conversations`` none may have several turns.

    Raises UserError that names the file (as ``shown``) and line of the first line that is not a prompt, of
    an id or a prompt used twice, and for an empty file.
    """
    shown = shown or file
    prompts: list[dict[str, Any]] = []
    ids: dict[str, int] = {}
    contents: dict[str, int] = {}
    for number, where, prompt in read_objects(
        file,
        shown,
        keys=_KEYS,
        example='{"id": ..., "prompt": ...}',
        max_bytes=MAX_BYTES,
        too_large=f"larger than {MAX_BYTES >> 20} MiB; use fewer prompts",
    ):
        _check(prompt, where)
        for kind, value, seen in (
            ("id", prompt["id"], ids),
            ("prompt", json.dumps([prompt.get(key) for key in (*_SHAPES, "system")]), contents),
        ):
            if value in seen:
                raise UserError(f"{where}: the same {kind} as line {seen[value]}; each is sent once a pass")
            seen[value] = number
        if not conversations and len(prompt.get("turns", ())) > 1:
            raise UserError(
                f"{where}: turns: the next turn waits for an answer and has no rate; give concurrency alone"
            )
        prompts.append(prompt)
    if not prompts:
        raise UserError(f"{shown}:1: holds no prompt; write one JSON object a line")
    return prompts


def most_tokens(prompt: dict[str, Any], output_tokens: int = 0) -> int:
    """Return a bound of the tokens in the last request of a prompt: all it says, and the answers between.

    Tokenizers of today start from the bytes of UTF-8 and merge them, so no text has more tokens than bytes.
    No smaller ratio is safe: English has four bytes a token, but Qwen makes a token of every digit.
    """
    turns = prompt.get("turns", ())
    told = [message["content"] for message in prompt.get("messages", ())]
    texts = [*turns, *told, *(prompt[key] for key in ("prompt", "system") if key in prompt)]
    return sum(len(text.encode(errors="replace")) for text in texts) + output_tokens * max(0, len(turns) - 1)


def _check(data: dict[str, Any], where: str) -> None:
    if not isinstance(data.get("id"), str) or not data["id"].strip():
        raise UserError(f"{where}: id: must be text that is not blank")
    if sum(shape in data for shape in _SHAPES) != 1:
        raise UserError(f"{where}: give either prompt or messages or turns")
    if "system" in data and "turns" not in data:
        raise UserError(f"{where}: system: belongs to turns; give messages with a system message instead")
    for key in ("prompt", "system"):
        if key in data and not _is_text(data[key]):
            raise UserError(f"{where}: {key}: must be text that is not blank")
    if "messages" in data:
        _check_messages(data["messages"], where)
    if "turns" in data:
        _check_turns(data["turns"], where)


def _check_turns(turns: Any, where: str) -> None:
    if not isinstance(turns, list) or not turns:
        raise UserError(f"{where}: turns: must be a list of at least one text")
    if not all(map(_is_text, turns)):
        raise UserError(f"{where}: turns: each must be text that is not blank")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _check_messages(messages: Any, where: str) -> None:
    if not isinstance(messages, list) or not messages:
        raise UserError(f"{where}: messages: must be a list of at least one message")
    for message in messages:
        if not isinstance(message, dict) or set(message) != {"role", "content"}:
            raise UserError(f"{where}: messages: each message has role and content, nothing else")
        if message["role"] not in _ROLES:
            raise UserError(
                f"{where}: messages: a role is {', '.join(_ROLES)}, not {quoted(message['role'])}"
            )
        if not _is_text(message["content"]):
            raise UserError(f"{where}: messages: content must be text that is not blank")

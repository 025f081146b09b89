"""What the server is told to do wrong: the behaviours behind ``--script``."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

GARBAGE = {"bang": "!", "replacement": "\ufffd", "newlines": "\n", "empty": "", "loop": " la"}


@dataclass
class Script:
    """One field a behaviour; in ``--script`` its name is written with dashes."""

    start: float = 0.0
    hang_launch: bool = False
    warming: float = 0.0
    crash: bool = False
    crash_log: str = ""
    crash_exit: int = 1
    crash_after: float = 0.0
    stranger: str = ""
    once: str = ""
    times: int = 1
    garbage: str = ""
    garbage_at: int = 1
    wrong: int = 0
    logit_shift: float = 0.0
    no_logprobs: bool = False
    no_chat_form: bool = False
    die_after: int = 0
    die_at: int = 0
    hang_after: int = 0
    abandoned: float = 0.0
    reasoning: int = 0
    ignore_term: bool = False
    orphans: int = 0
    orphan_mib: int = 16
    orphan_clean_env: bool = False
    orphan_seconds: float = 120.0
    keep_port: str = ""
    port_stolen: bool = False
    leak: str = ""
    override: dict[str, Any] = field(default_factory=dict)


def parse_script(items: list[str]) -> Script:
    """Return the behaviours named by ``items``; raises ValueError for an unknown one."""
    wanted: dict[str, Any] = {}
    for item in items:
        if item.startswith("{"):
            wanted.update(json.loads(item))
        else:
            name, equals, value = item.partition("=")
            wanted[name] = _value(value) if equals else True
    known = {f.name.replace("_", "-"): f.name for f in fields(Script)}
    unknown = sorted(set(wanted) - set(known))
    if unknown:
        raise ValueError(f"--script: unknown {unknown}; known: {sorted(known)}")
    if wanted.get("stranger") is True:
        wanted["stranger"] = "somebody-else"
    if wanted.get("garbage") is True:
        wanted["garbage"] = "bang"
    script = Script(**{known[name]: value for name, value in wanted.items()})
    if script.garbage and script.garbage not in GARBAGE:
        raise ValueError(f"--script: garbage={script.garbage}; one of {sorted(GARBAGE)}")
    return tamed(script)


def tamed(script: Script) -> Script:
    """Return the script, or a healthy one where its fault has had its ``times`` in the file ``once``."""
    if not script.once:
        return script
    counter = Path(script.once)
    past = len(counter.read_text()) if counter.exists() else 0
    if past >= script.times:
        return Script(start=script.start, override=script.override)
    with counter.open("a") as stream:
        stream.write(".")
    return script


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text

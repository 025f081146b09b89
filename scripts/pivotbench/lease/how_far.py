"""How far a launch is, told while it is waited for: by its log alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from pivotbench.diagnosis.log_lines import plain
from pivotbench.engines import get_engine
from pivotbench.lease.state import LaunchOrder
from pivotbench.redaction import redacted_log_line, secrets_of

# As tqdm writes them: Loading safetensors checkpoint shards:  40% Completed | 2/5 [00:04<00:06, 2.07s/it]
PROGRESS_BAR = re.compile(r"(?P<what>[^:(%|]*)[^%|]*?(?P<percent>\d{1,3})%(?:\|| Completed)")
# The time of day, or the time since the start as llama.cpp has it.
STAMP = re.compile(r"\d\d:\d\d:\d\d|^\d+\.\d\d\.\d{3}\.\d{3} ")
LONGEST_CHARACTERS = 120


def how_far(order: LaunchOrder) -> str:
    """Return the phases a launch has behind it, with their times, and the last news of its log."""
    try:
        log = Path(order.log).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        log = []
    phases = [f"{p.name} {p.seconds:.0f} s" for p in get_engine(order.engine).launch_phases(log)]
    news = redacted_log_line(last_news(log), secrets_of(order.secrets))[:LONGEST_CHARACTERS]
    return " | ".join(filter(None, [", ".join(phases), news])) or "no word yet"


def last_news(log: Sequence[str]) -> str:
    """Return the last line that carries a time, or a progress bar in short; "" where there is none.

    What else stands in a log are parts of messages: the source of a warning, a table, a trace.
    """
    for line in map(plain, reversed(log)):
        if bar := PROGRESS_BAR.match(line):
            return f"{bar['what'].strip()} {bar['percent']} %".strip()
        if STAMP.search(line):
            return line.strip()
    return ""

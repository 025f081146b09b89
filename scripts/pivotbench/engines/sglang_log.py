"""Where the time of an SGLang launch went, from its log."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from pivotbench.engines.base import LaunchPhase

# A progress bar without a line break may stand before the stamp, so it is searched for, not matched.
_STAMP = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)[^\]]*\] (.*)")
_READY = "The server is fired up and ready to roll"

# Which phase a line ends. The time since the previous such line, of whichever process, belongs to it.
_ENDS = (
    ("Init torch distributed begin", "imports"),
    ("Init torch distributed ends", "distributed"),
    ("Load weight begin", "distributed"),
    ("Load weight end", "weights"),
    ("KV Cache is allocated", "kv_cache"),
    ("Memory pool end", "kv_cache"),
    ("graph begin", "kv_cache"),
    ("graph end", "cuda_graphs"),
    (_READY, "warmup"),
)


def launch_phases(log: Sequence[str]) -> list[LaunchPhase]:
    """Return phases in the order they were first entered; their sum is first stamp to last phase's end.

    Stamps are whole seconds. Several ranks and a draft model interleave: a phase entered twice is
    listed once with its times added. A launch that broke off gives the phases it completed.
    """
    seconds: dict[str, float] = {}
    since: datetime | None = None
    for line in log:
        found = _STAMP.search(line)
        if not found:
            continue
        at = datetime.fromisoformat(found.group(1))
        since = since or at
        phase = next((name for text, name in _ENDS if text in found.group(2)), None)
        if phase is None:
            continue
        seconds[phase] = seconds.get(phase, 0.0) + (at - since).total_seconds()
        since = at
        if phase == "warmup":
            break
    return [LaunchPhase(name, value) for name, value in seconds.items()]

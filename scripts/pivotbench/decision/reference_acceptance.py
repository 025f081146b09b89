"""Acceptance lengths that others published for a model, and what a measured one says beside them.

reference_acceptance.json holds them with their sources: ``lengths`` for 1, 2, 3 ... draft tokens in a chain.
Prompts differ, so only a length far below is a sign; one near it, without gain, acquits the drafts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_suffix(".json")
FAR_BELOW = 0.75


def beside_published(
    model: str, settings: Mapping[str, Any], length: float, *, without_gain: bool
) -> str | None:
    """Return one clause that sets ``length`` beside what is published for the model, or None.

    ``settings``: the server's, as requested or in effect. None where nothing is published for the model,
    where the number of draft tokens is unknown, and where drafts form a tree, not a chain.
    """
    drafted = _draft_tokens(settings)
    known = [
        (float(entry["lengths"][drafted - 1]), str(entry["prompts"]))
        for entry in _table()
        if drafted and entry["model"] in model and drafted <= len(entry["lengths"])
    ]
    if not known:
        return None
    shown = " and ".join(f"{published:.2f} ({prompts})" for published, prompts in known)
    said = f"published for {drafted} draft token{'s' if drafted != 1 else ''}: {shown}"
    if length < FAR_BELOW * min(published for published, _ in known):
        return f"{said}; {length:.2f} is far below, suspect the draft path"
    return f"{said}; drafts do as well here, suspect the cost of verification" if without_gain else said


def _draft_tokens(settings: Mapping[str, Any]) -> int | None:
    told = {name.lstrip("-").replace("-", "_"): value for name, value in settings.items()}
    if told.get("speculative_eagle_topk") not in (None, 1):
        return None
    steps = told.get("speculative_num_steps")
    return int(steps) if isinstance(steps, int) and steps > 0 else None


@cache
def _table() -> list[dict[str, Any]]:
    return list(json.loads(FILE.read_text(encoding="utf-8")))

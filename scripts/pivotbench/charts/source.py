"""Where figures come from, in one line: what is under every picture that is sent around alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pivotbench.evidence import CellFiles


def measured_on(cells: Sequence[CellFiles]) -> str:
    """Return the days on which the cells ran, in words; empty where none did."""
    begun = [datetime.fromisoformat(cell.launch["started"]) for cell in cells if cell.launch]
    if not begun:
        return ""
    first, last = (f"{moment.day} {moment:%B %Y}" for moment in (min(begun), max(begun)))
    return first if first == last else f"{first} to {last}"


def source_line(decision: Mapping[str, Any], cells: Sequence[CellFiles]) -> str:
    """Return study, model, engine, hardware and days; what is not known is left out."""
    environment = decision["environment"]
    engine = " ".join(filter(None, (decision["engine"], environment.get("engine_version"))))
    models = [gpu.get("name", "GPU") for gpu in environment.get("gpus") or []]
    gpus = ", ".join(f"{models.count(model)} × {model}" for model in dict.fromkeys(models))
    on = gpus or environment.get("cpu_model")
    parts = (decision["study"], f"{decision['model']} on {engine}", on, measured_on(cells))
    return f"Pivotbench: {', '.join(filter(None, parts))}"

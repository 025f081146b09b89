"""Two folders of the demo study, before and after an upgrade that changed something of every kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from campaigns import demo_cells, demo_rules, write_campaign
from factory import ENVIRONMENT, UNSUPPORTED, Cell, noisy, smoke_prompt
from pivotbench.changes.compare import compare_folders
from pivotbench.changes.folder import read_pair

BACKENDS = ("flash-on", "flash-off", "kv-q8", "no-repack", "kv-q8-no-flash")
DRAFTERS = ("ngram-simple", "ngram-map-k")
ASK, TEXT = "What is 2+2?", "The answer is 4."
# What the upgrade made of the speed of each backend.
UPGRADE = {"flash-on": 1.28, "flash-off": 0.62, "kv-q8": 1.01, "no-repack": 0.97}


def comparison(folder: Path, attack: str = "") -> dict[str, Any]:
    """Write both folders under ``folder`` and return what changed; ``attack``: what servers wrote."""
    rules = replace(demo_rules(), rounds_min=3, margin=0.1)
    old = write_campaign(folder / "before", rules, _before, BACKENDS, DRAFTERS)

    def after(phase: str, names: Sequence[str], round_: int) -> list[Cell]:
        return [_upgraded(cell, attack) for cell in _before(phase, names, round_)]

    new = write_campaign(folder / "after", rules, after, BACKENDS, DRAFTERS)
    return compare_folders(*read_pair(str(old), str(new)))


def _before(phase: str, names: Sequence[str], round_: int) -> list[Cell]:
    prompt = smoke_prompt(ASK, TEXT, gap_nats=3.0)
    chunks = {"chunked_prefill_size": 8192}
    return [replace(cell, smoke=[prompt], effective=chunks) for cell in demo_cells(phase, names, round_)]


def _upgraded(cell: Cell, attack: str) -> Cell:
    base = cell.configuration.partition("+")[0]
    environment = {**ENVIRONMENT, "engine_version": "2027.1.0", "host": "other-host", "system": "Linux 7.1"}
    cell = replace(
        cell,
        tok_s={
            load: noisy(
                speed * UPGRADE.get(base, 1.0), 0.01, "upgraded", cell.configuration, cell.round, *load
            )
            for load, speed in cell.tok_s.items()
        },
        environment=environment,
    )
    if base == "flash-off":
        cell = replace(cell, effective={"chunked_prefill_size": 2048})
    if base == "no-repack":
        return replace(cell, failed="launch", reason=replace(UNSUPPORTED, message=f"no such option {attack}"))
    if base == "kv-q8-no-flash":
        return replace(cell, failed=None, reason=None, tok_s=dict.fromkeys(demo_loads(), 70.0))
    if base == "kv-q8":
        return replace(cell, smoke=[smoke_prompt(ASK, f"It is four. {attack}", gap_nats=3.0)])
    return cell


def demo_loads() -> list[tuple[str, int]]:
    """Return the loads of the demo study."""
    return [(workload, streams) for workload in ("repetitive", "free") for streams in (1, 4)]

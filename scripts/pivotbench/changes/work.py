"""Whether two folders sent the same work, as far as their stage files tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pivotbench.evidence import CellFiles

# At which paces a workload is sent says nothing of what is sent.
PACES = ("concurrency", "rate")


def work_sent(cells: Sequence[CellFiles]) -> dict[str, dict[str, Any]]:
    """Return what was sent by workload: its settings (prompt files by content), kind, stop, simulated drafts.

    Of cells written before the work was recorded, kind and stop alone are known.
    """
    sent: dict[str, dict[str, Any]] = {}
    for cell in cells:
        if not cell.measured or cell.throughput is None:
            continue
        asked = (cell.throughput.get("asked") or {}).get("workloads") or {}
        for run in cell.throughput["runs"]:
            name = run["workload"]
            settings = {key: value for key, value in asked.get(name, {}).items() if key not in PACES}
            simulated = bool((run.get("acceptance") or {}).get("simulated"))
            told = {"kind": run["kind"], "stop": run.get("stop", "length"), "simulated drafts": simulated}
            sent[name] = {**settings, **told}
    return sent


def other_work(old: Sequence[CellFiles], new: Sequence[CellFiles], workloads: Iterable[str]) -> str | None:
    """Return in words how what was sent of these workloads differs, or None.

    What only one of the folders tells is no difference.
    """
    before, after = work_sent(old), work_sent(new)
    found = [
        f"{name}: {setting} {was} | {now}"
        for name in sorted(workloads)
        for setting, was, now in differing(before.get(name, {}), after.get(name, {}))
    ]
    return "; ".join(found) or None


def differing(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return (setting, old, new) for each setting that both have and that differs; of files the digest."""
    return [
        (key.replace("_", " "), _shown(key, old[key]), _shown(key, new[key]))
        for key in sorted(old.keys() & new.keys())
        if old[key] != new[key]
    ]


def _shown(setting: str, value: Any) -> str:
    return f"SHA-256 {str(value)[:8]}" if setting == "prompts" else str(value)

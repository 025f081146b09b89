"""What the evidence cost in launches and seconds."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from pivotbench.evidence import CellFiles
from pivotbench.results import STAGES


def cost(cells: Iterable[CellFiles], gpus: int) -> dict[str, Any]:
    """Return gpu_seconds, server_seconds and launches over the cells, failures included.

    Seconds are the durations of stages that ran; those between stages of one cell are not counted. Each of
    a server's ``gpus`` counts; on the CPU gpu_seconds is 0.
    """
    server = 0.0
    launches: set[str] = set()
    for cell in cells:
        for stage in STAGES:
            content = cell.stage(stage)
            if content is None or content["status"] == "skipped":
                continue
            server += _seconds(content["started"], content["ended"])
            launch_id = (content.get("server") or {}).get("launch_id")
            if launch_id or stage == "launch":
                launches.add(launch_id or f"{cell.phase}/{cell.configuration}/{cell.round}")
    return {
        "gpu_seconds": round(server * gpus, 1),
        "server_seconds": round(server, 1),
        "launches": len(launches),
    }


def _seconds(started: str, ended: str) -> float:
    return (datetime.fromisoformat(ended) - datetime.fromisoformat(started)).total_seconds()

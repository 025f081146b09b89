"""Whether servers count the acceptance themselves that their answers report."""

from __future__ import annotations

from collections.abc import Iterable

from pivotbench.evidence import CellFiles

Load = tuple[str, str, int | None]


def counted_notes(cells: Iterable[CellFiles]) -> dict[Load, str]:
    """Return, by configuration, workload and concurrency, how both sources compare over all rounds.

    Confirmed, or disputed in at least one; where a source is silent there is no note.
    """
    verdicts: dict[Load, list[bool]] = {}
    for cell in cells:
        for run in (cell.throughput or {}).get("runs") or []:
            metrics = (run.get("acceptance") or {}).get("metrics") or {}
            if metrics.get("differs") is not None:
                load = (cell.configuration, run["workload"], run["concurrency"])
                verdicts.setdefault(load, []).append(metrics["differs"])
    return {load: "disputed" if any(each) else "confirmed" for load, each in verdicts.items()}

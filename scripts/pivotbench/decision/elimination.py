"""Which configurations are out because they do not work, and for what reason."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pivotbench.diagnosis.reasons import remedy_of
from pivotbench.evidence import CellFiles
from pivotbench.results import Reason, Stage

TRANSIENT_LIMIT = 2


def eliminated(cells: Iterable[CellFiles]) -> list[dict[str, Any]]:
    """Return the eliminated configurations, sorted by name, each with the failure that decided.

    One deterministic failure is enough. A transient one (timeout, leak, ...) may be bad luck, so it takes
    two of them, in different rounds and so on different launches.
    """
    failures: dict[tuple[str, str], list[tuple[Stage, Reason]]] = {}
    for cell in sorted(cells, key=lambda c: (c.phase, c.configuration, c.round)):
        if cell.failure is not None:
            failures.setdefault((cell.phase, cell.configuration), []).append(cell.failure)
    out = []
    for (phase, configuration), found in failures.items():
        deterministic = [f for f in found if f[1].kind == "deterministic"]
        if not deterministic and len(found) < TRANSIENT_LIMIT:
            continue
        stage, reason = deterministic[0] if deterministic else found[-1]
        again = "" if deterministic else f" ({len(found)} rounds failed)"
        out.append(
            {
                "phase": phase,
                "configuration": configuration,
                "stage": stage,
                "code": reason.code,
                "reason": reason.message + again,
                "evidence": list(reason.evidence),
                "links": list(reason.links),
                "remedy": remedy_of(reason),
            }
        )
    return out

"""What was done to one campaign or cell, and whether it came through."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

# A guard that has nothing to wait for is gone long before; a busy machine takes its time.
LEAK_SECONDS = 20.0


@dataclass(frozen=True)
class Kill:
    """One kill point: who was killed, and the stage that the run was at."""

    target: str
    at: str


@dataclass(frozen=True)
class Chain:
    """Runs killed in a row, and the one that was then let end; ``fault`` is what was wrong afterwards."""

    seed: str
    kills: tuple[Kill, ...]
    fault: str | None
    seconds: float


def table(chains: Iterable[Chain]) -> str:
    """Return the kill points by who was killed and at which stage, as a Markdown table."""
    counts = Counter(kill for chain in chains for kill in chain.kills)
    stages = ("between", "launch", "smoke", "throughput", "teardown")
    columns = [stage for stage in stages if any(kill.at == stage for kill in counts)]
    rows = [f"| killed | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for target in dict.fromkeys(kill.target for kill in sorted(counts, key=lambda kill: kill.target)):
        rows.append(f"| {target} | {' | '.join(str(counts[Kill(target, at)]) for at in columns)} |")
    return "\n".join(rows)

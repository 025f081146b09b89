"""What holds the winner back, by evidence, and what would be faster if that is so.

The roofline tells the cases apart. Where it is near, memory bandwidth sets the pace and only fewer bytes or
more tokens a pass help. Where it is far and several GPUs work on each layer, their sums may; where it is far
with one GPU and one request, launching kernels and scheduling may. NEAR is a half: SGLang 0.5.16 reached 61 %
with an 8B model in bf16 on one H200, one request at a time (194 of 317 tok/s), 45 % with the same on two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from pivotbench.decision.fairness import largest_graph
from pivotbench.decision.levers.drafting import long_contexts, recorded_drafts, shorter_drafts
from pivotbench.decision.levers.lever import Lever, lever, variant
from pivotbench.decision_rules import DecisionRules
from pivotbench.engines import get_engine
from pivotbench.engines.spelling import Remedy, Spelling
from pivotbench.evidence import CellFiles
from pivotbench.settings import flat

Entry = Mapping[str, Any]
NEAR = 0.5  # share of the roofline from which memory bandwidth is taken to set the pace
WAITING = 0.5  # share of a request's time before its first token from which it is named
_SUMS: tuple[tuple[Remedy, str, str], ...] = (
    ("fuse_collectives", "fused-sums", "fuse the GPUs' sums with what follows them"),
    ("other_collectives", "other-sums", "sum over the GPUs by another library"),
)


@dataclass(frozen=True)
class Winner:
    """The winner's last measured cell, its rows of the measurements, and decision.json's ``limit``.

    ``concurrency``: the metric's. ``version``: which version of the engine it runs, where the study says so.
    """

    cell: CellFiles
    rows: Sequence[Entry]
    limit: Entry
    spelling: Spelling
    concurrency: int | None
    version: str | None = None

    @property
    def name(self) -> str:
        """The configuration."""
        return self.cell.configuration

    @property
    def settings(self) -> Mapping[str, Any]:
        """Its settings in effect, by dotted name."""
        return flat(self.cell.effective)

    def with_remedy(self, remedy: Remedy, suffix: str) -> dict[str, Any] | None:
        """Return the fragment of a variant with the engine's flags for a remedy, None where it has none."""
        flags = self.spelling.remedies.get(remedy)
        asked = self.cell.requested
        if flags is None or all(asked.get(name) == value for name, value in flags.items()):
            return None
        return variant(self.cell, suffix, flags, self.version)


def held_back(
    rules: DecisionRules,
    last: CellFiles | None,
    limit: Entry,
    open_loop: Sequence[Entry],
    speculation: Sequence[Entry],
    cells: Sequence[CellFiles],
    rows: Sequence[Entry],
) -> list[Lever]:
    """Return the levers on the winner's speed, the surest sign first.

    ``last``: the winner's last measured cell, None without one; ``limit``, ``open_loop`` and ``speculation``:
    of the decision; ``cells`` and ``rows``: all evidence.
    """
    if last is None:
        return []
    own = [row for row in rows if (row["phase"], row["configuration"]) == (last.phase, last.configuration)]
    winner = Winner(
        last,
        own,
        limit,
        get_engine(rules.engine).spelling,
        rules.metric_concurrency,
        rules.version_of(last.configuration),
    )
    drafting = {c.configuration: c for c in cells if c.measured and c.phase == "speculative"}
    return [
        *_graphs(winner),
        *_backlog(winner, open_loop),
        *_bandwidth(winner),
        *_far_from_the_roof(rules, winner),
        *_waiting(rules, winner),
        *recorded_drafts(winner.spelling, speculation, drafting, [cell.requested for cell in cells]),
        *shorter_drafts(winner.spelling, speculation, drafting),
        *long_contexts(speculation, rows),
    ]


def _graphs(winner: Winner) -> Iterator[Lever]:
    largest = largest_graph(winner.settings, winner.spelling)
    flags, sent = winner.spelling.remedies.get("graphs"), winner.concurrency
    if largest is None or sent is None or largest >= sent or flags is None:
        return
    sizes = f"of batches up to {largest}" if largest else "turned off"
    reach = {winner.spelling.graphs_reach: sent} if winner.spelling.graphs_reach else {}
    yield lever(
        "record the kernels of the batches that are served",
        f"{winner.name} had {sent} requests at once to serve and CUDA graphs {sizes}, "
        "so it launched every kernel by itself",
        variant(winner.cell, "graphs", {**flags, **reach}, winner.version),
        f"{winner.name}-graphs equivalent to {winner.name}, or slower",
    )


def _backlog(winner: Winner, open_loop: Sequence[Entry]) -> Iterator[Lever]:
    behind = [
        row
        for row in open_loop
        if row["configuration"] == winner.name and row["rounds_sustained"] < row["rounds"]
    ]
    served, cached = winner.spelling.requests, winner.spelling.tokens
    each = served.told(winner.settings) if served else None
    replicas = winner.settings.get(winner.spelling.data_parallel or "") or 1
    if not behind or served is None or not isinstance(each, int) or not isinstance(replicas, int):
        return
    limit = each * replicas
    row = min(behind, key=lambda each: each["rate_per_second"])
    peak = row["in_flight_peak"]
    if peak is None or peak <= limit:
        return
    flags: dict[str, Any] = {served.flag: -(-peak // replicas)}
    pool = cached.told(winner.settings) if cached else None
    if cached and cached.flag in winner.cell.requested and isinstance(pool, int):
        flags[cached.flag] = pool * peak // limit  # as many tokens for each as before
    yield lever(
        "serve more requests at once",
        f"at {row['rate_per_second']:g} requests/s of {row['workload']} {winner.name} falls behind: "
        f"up to {peak} are in flight and {limit} are served, so the others queue",
        variant(winner.cell, "wider", flags, winner.version),
        f"{row['rate_per_second']:g} requests/s still not sustained, or sustained at a TTFT nobody can use",
    )


def _bandwidth(winner: Winner) -> Iterator[Lever]:
    share = winner.limit["share"]
    if share is None or share < NEAR:
        return
    reached = f"{winner.name} reaches {100 * share:.0f} % of what memory bandwidth allows"
    heaviest = max(winner.limit["by_workload"], key=lambda row: row["cache_bytes_per_pass"])
    cache, read = heaviest["cache_bytes_per_pass"], heaviest["bytes_per_pass"]
    narrow_cache = winner.with_remedy("narrow_cache", "narrow-cache")
    if cache > read / 2 and narrow_cache:
        yield lever(
            "keep the cache in fewer bits",
            f"{reached}, and {cache / 1e9:.1f} of {read / 1e9:.1f} GB a pass are the cache",
            narrow_cache,
            f"{winner.name}-narrow-cache equivalent to {winner.name} or slower, or out for its answers",
        )
    narrow = winner.with_remedy("narrow_weights", "narrow")
    shape = ((winner.cell.launch or {}).get("model") or {}).get("shape") or {}
    if cache <= read / 2 and narrow and not shape.get("quantization"):
        yield lever(
            "keep the weights in fewer bits",
            f"{reached}, and {(read - cache) / 1e9:.1f} of {read / 1e9:.1f} GB a pass are weights in "
            f"{shape.get('dtype')}",
            narrow,
            f"{winner.name}-narrow equivalent to {winner.name} or slower, or out for its answers",
        )


def _far_from_the_roof(rules: DecisionRules, winner: Winner) -> Iterator[Lever]:
    share = winner.limit["share"]
    if share is None or share >= NEAR or winner.concurrency != 1:
        return  # with many requests, computing may set the pace as well: no cause is claimed
    reached = f"{winner.name} reaches {100 * share:.0f} % of what memory bandwidth allows"
    if rules.gpus > 1:
        for remedy, suffix, what in _SUMS:
            if fragment := winner.with_remedy(remedy, suffix):
                yield lever(
                    what,
                    f"{reached} with {rules.gpus} GPUs, which add up their results twice a layer",
                    fragment,
                    f"{winner.name}-{suffix} equivalent to {winner.name}, or slower",
                )
        return
    if fragment := winner.with_remedy("fewer_interrupts", "fewer-stops"):
        yield lever(
            "let the scheduler step in less often",
            f"{reached} with one request and one GPU: launching and scheduling take the rest",
            fragment,
            f"{winner.name}-fewer-stops equivalent to {winner.name}, or slower",
        )


def _waiting(rules: DecisionRules, winner: Winner) -> Iterator[Lever]:
    shares = [
        row["ttft_p50_seconds"] / row["e2e_p50_seconds"]
        for row in winner.rows
        if row["workload"] in rules.metric_weights
        and row["concurrency"] == winner.concurrency
        and row["ttft_p50_seconds"]
        and row["e2e_p50_seconds"]
    ]
    fragment = winner.with_remedy("shorter_prefills", "short-prefills")
    if (winner.concurrency or 0) > 1 and shares and median(shares) >= WAITING and fragment:
        yield lever(
            "take prompts up in smaller pieces",
            f"{100 * median(shares):.0f} % of a request's time passes before its first token",
            fragment,
            f"{winner.name}-short-prefills equivalent to {winner.name} or slower, or no shorter TTFT",
        )

"""What to try for cheaper drafts: recorded kernels, shorter drafts, or long contexts apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pivotbench.decision.fairness import largest_graph
from pivotbench.decision.levers.lever import Lever, lever, variant
from pivotbench.decision.speculation import REJECTED
from pivotbench.engines.spelling import Spelling
from pivotbench.evidence import CellFiles
from pivotbench.settings import flat, spelled

Entry = Mapping[str, Any]
# Texts draft differently by themselves: only a large fall over a much longer context is named.
LONGER, SHORTER_DRAFTS = 4.0, 0.85


def recorded_drafts(
    spelling: Spelling,
    speculation: Sequence[Entry],
    drafting: Mapping[str, CellFiles],
    tried: Sequence[Mapping[str, Any]],
) -> Iterator[Lever]:
    """Yield the lever on the first configuration whose draft launches some kernels one by one.

    ``tried``: the flags of all that was launched; silent where the like with recorded kernels is among them.
    Other arguments as for ``shorter_drafts``.
    """
    graphs = spelling.draft_graphs
    for entry in speculation:
        cell, cost = drafting.get(entry["configuration"]), entry["step_cost_ratio"]
        if graphs is None or cell is None or cost is None or entry["derived"]:
            continue
        settings = flat(cell.effective)
        drafts = str(settings.get(graphs.algorithm)) in graphs.algorithms
        attention = str(graphs.attention.told(settings))
        off = largest_graph(settings, spelling) == 0
        if not drafts or attention not in graphs.eager or off:
            continue
        instead = {graphs.attention.flag: graphs.recorded}
        if _plain({**cell.requested, **instead}) in map(_plain, tried):
            continue
        name, suffix = entry["configuration"], f"{graphs.recorded}-draft"
        yield lever(
            f"record all kernels of the draft with {name}",
            f"on {entry['workload']} at {entry['concurrency']} a pass costs {cost:.2f} plain steps, and with "
            f"{attention} the draft's catching up after each pass has no CUDA graph of its own",
            variant(cell, suffix, instead),
            f"{name}-{suffix} no faster than {name}",
        )
        return


def _plain(flags: Mapping[str, Any]) -> dict[str, Any]:
    return {spelled(name): value for name, value in flags.items()}


def shorter_drafts(
    spelling: Spelling, speculation: Sequence[Entry], drafting: Mapping[str, CellFiles]
) -> Iterator[Lever]:
    """Yield the lever on the first configuration that costs or is equal, where its cause is known.

    ``speculation``: of the decision; ``drafting``: the last measured cell of each configuration.
    """
    for entry in speculation:
        cell = drafting.get(entry["configuration"])
        proposed, accepted = entry["draft_proposed"], entry["draft_accepted"]
        if entry["verdict"] not in ("costs", "equal") or cell is None or not proposed or accepted is None:
            continue
        lengths = {
            flag: value // 2
            for flag in spelling.draft_length
            if isinstance(value := cell.requested.get(flag), int) and value > 1
        }
        rejected = accepted / proposed < REJECTED
        cost = None if entry["derived"] else entry["step_cost_ratio"]
        if not lengths or (cost is None and not rejected):
            continue
        name = entry["configuration"]
        why = "of the drafts are accepted, so most are made in vain"
        if not rejected:
            why = f"of the drafts are accepted and a pass costs {cost:.2f} plain steps"
        yield lever(
            f"draft half as far with {name}",
            f"on {entry['workload']} at {entry['concurrency']} {100 * accepted / proposed:.0f} % {why}",
            variant(cell, "shorter", lengths),
            f"{name}-shorter no faster than {entry['baseline']}",
        )
        return


def long_contexts(speculation: Sequence[Entry], rows: Sequence[Entry]) -> Iterator[Lever]:
    """Yield the lever on the first configuration whose acceptance falls with the length of the context.

    ``rows``: all measurements.
    """
    lengths = _context_tokens(rows)
    told: dict[tuple[str, int], list[tuple[float, Entry]]] = {}
    for entry in speculation:
        context = lengths.get((entry["configuration"], entry["workload"], entry["concurrency"]))
        if entry["evidence"] == "text" and entry["acceptance_length"] and context:
            told.setdefault((entry["configuration"], entry["concurrency"]), []).append((context, entry))
    for (name, concurrency), entries in sorted(told.items()):
        (short, one), (long, other) = (
            min(entries, key=lambda e: e[0]),
            max(entries, key=lambda e: e[0]),
        )
        fallen = other["acceptance_length"] / one["acceptance_length"]
        if long < LONGER * short or fallen > SHORTER_DRAFTS:
            continue
        workload = other["workload"]
        yield lever(
            f"decide {workload} apart",
            f"with {name} a pass gives {one['acceptance_length']:.2f} tokens after {short:.0f} of context "
            f"({one['workload']}) and {other['acceptance_length']:.2f} after {long:.0f} ({workload})",
            {"decision": {"metric": {"workloads": {workload: 1}, "concurrency": concurrency}}},
            f"{name} faster than its baseline on {workload} alone as well",
        )
        return


def _context_tokens(rows: Sequence[Entry]) -> dict[tuple[str, str, int], float]:
    """Prompt and half of the answer, mean of the requests, by configuration, workload and concurrency."""
    sums: dict[tuple[str, str, int], list[float]] = {}
    for row in rows:
        if (
            row["concurrency"]
            and row["requests"]
            and row["output_tokens"]
            and row["prompt_tokens"] is not None
        ):
            place = (row["configuration"], row["workload"], row["concurrency"])
            context = row["prompt_tokens"] + row["output_tokens"] / 2
            sums.setdefault(place, []).append(context / row["requests"])
    return {place: sum(found) / len(found) for place, found in sums.items()}

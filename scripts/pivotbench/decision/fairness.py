"""Whether two configurations met the same load under the same conditions, whatever the study did not ask for.

What an engine changes by itself because of a flag belongs to that flag and is listed. It is grave where it
changes what load a server may take at the concurrency that was measured, for then the figures answer another
question; so are other engines, drivers, GPUs and models, and clocks that differ by throttling. Grave pairs
are not compared, and the reason says what to ask for so that they can be.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pivotbench.decision.conditions import Conditions
from pivotbench.decision.out_of_turn import Begun, late
from pivotbench.engines.spelling import Spelling, Topic
from pivotbench.settings import flat, spelled, unasked_differences

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Demand:
    """What a server was asked to hold at once; ``tokens_per_request``: prompt and answer, None: not known."""

    concurrency: int
    tokens_per_request: float | None = None

    @property
    def tokens(self) -> float | None:
        """How many tokens the cache must hold so that no request waits or is taken out."""
        return None if self.tokens_per_request is None else self.concurrency * self.tokens_per_request


@dataclass(frozen=True)
class Serving:
    """How one configuration was served: flags asked for, settings in effect, hardware, machines, and when.

    ``client_bound``: in how many rounds the load generator may have set the speed, of how many. ``places``:
    for host, system and processor, the names seen. ``begun``: when the load of each measured round began.
    """

    requested: Mapping[str, Any] = field(default_factory=dict)
    effective: Mapping[str, Any] = field(default_factory=dict)
    conditions: Conditions = field(default_factory=Conditions)
    client_bound: tuple[int, int] = (0, 0)
    places: Mapping[str, frozenset[str]] = field(default_factory=dict)
    begun: Begun = field(default_factory=dict)

    @cached_property
    def settings(self) -> Mapping[str, Any]:
        """The settings in effect by dotted name; looked up for every pair, so worked out once."""
        return flat(self.effective)

    @cached_property
    def asked(self) -> frozenset[str]:
        """The names of the flags asked for."""
        return frozenset(spelled(name) for name in self.requested)


def demand_of(rows: Iterable[Row], workloads: Iterable[str], concurrency: int | None) -> Demand:
    """Return the demand of these workloads at this concurrency: the longest requests among ``rows``.

    Without a concurrency it is the largest load that was measured: at a rate, the most requests in flight.
    """
    wanted = frozenset(workloads)
    sent = [row for row in rows if row["workload"] in wanted]
    most = concurrency or max(map(_at_once, sent), default=1)
    lengths = [
        (row["prompt_tokens"] + row["output_tokens"]) / row["requests"]
        for row in sent
        if _at_once(row) == most
        and row["prompt_tokens"] is not None
        and row["output_tokens"] is not None
        and row["requests"]
    ]
    return Demand(most, max(lengths, default=None))


def _at_once(row: Row) -> int:
    return int(row["concurrency"] or row["in_flight_peak"] or 0)


def confounders(a: Serving, b: Serving, spelling: Spelling) -> tuple[str, ...]:
    """Return what differed between the two beside what the study asked for, each as ``what: a's | b's``."""
    found = list(unasked_differences(spelling, (a.requested, b.requested), (a.settings, b.settings)))
    found += a.conditions.unlike(b.conditions)
    if bool(a.client_bound[0]) != bool(b.client_bound[0]):
        bound = [f"{hit} of {all_} rounds" for hit, all_ in (a.client_bound, b.client_bound)]
        found.append(f"client_bound: {' | '.join(bound)}")
    for name in sorted(a.places.keys() & b.places.keys()):
        if a.places[name] != b.places[name]:
            shown = [", ".join(sorted(each.places[name])) for each in (a, b)]
            found.append(f"{name}: {' | '.join(shown)}")
    if rounds := late(a.begun, b.begun) or (late(b.begun, a.begun) or ())[::-1]:
        times = [each.begun[n] for n, each in zip(rounds, (a, b), strict=True)]
        shown = [f"round {n} at {at:%Y-%m-%d %H:%M:%S %Z}" for n, at in zip(rounds, times, strict=True)]
        found.append(f"out of turn: {' | '.join(shown)}")
    return tuple(found)


def unfair(a: Serving, b: Serving, demand: Demand, spelling: Spelling) -> str | None:
    """Return why the two cannot be compared under this demand, or None.

    - Requests served at once: grave where one's limit is below the concurrency and the limits differ, since
      its requests queue and it decodes smaller batches; a lower limit above the concurrency changes nothing.
    - Tokens in the cache: grave where one's pool cannot hold the load (concurrency times prompt and answer)
      and the other's can, since requests wait or are taken out and computed again.
    - Recorded kernels (CUDA graphs): grave where one has none, or none as large as the concurrency, and the
      other has, since it then launches every kernel by itself.
    - The hardware: see Conditions.unfair_to.

    None of it counts where either configuration asked for it.
    """
    asked = a.asked | b.asked
    requests = spelling.requests
    limits = _numbers(requests, a, b, spelling, asked)
    if requests and limits and limits[0] != limits[1] and min(limits) < demand.concurrency:
        flag, enough = requests.flag, demand.concurrency
        return (
            f"they serve {limits[0]:g} and {limits[1]:g} requests at once and {enough} were sent; "
            f"to compare them, serve both with {flag}: {enough}"
        )
    pools = _numbers(spelling.tokens, a, b, spelling, asked)
    if pools and demand.tokens is not None and min(pools) < demand.tokens <= max(pools):
        return (
            f"their caches hold {pools[0]:,.0f} and {pools[1]:,.0f} tokens and the load needs "
            f"{demand.tokens:,.0f}; to compare them, send fewer or shorter requests"
        )
    return _graphs(a, b, demand, spelling, asked) or a.conditions.unfair_to(b.conditions)


def environments_differ(environments: Iterable[str]) -> str:
    """Return in words how environments (canonical JSON of their comparable parts) differ; "" if not."""
    parts = []
    for text in sorted(environments):
        try:
            parts.append(json.loads(text))
        except ValueError:
            return ""
    if not all(isinstance(part, Mapping) for part in parts):
        return ""
    found = []
    for name in dict.fromkeys(key for part in parts for key in part):
        values = list(dict.fromkeys(_shown(part.get(name)) for part in parts))
        if len(values) > 1:
            found.append(f"{name.replace('_', ' ')} {' and '.join(values)}")
    return "; ".join(found)


def _numbers(
    topic: Topic | None, a: Serving, b: Serving, spelling: Spelling, asked: frozenset[str]
) -> tuple[float, float] | None:
    """What each server takes in all: a limit is that of one replica of the model."""
    if topic is None or asked & {spelled(topic.flag), *topic.settings}:
        return None
    one, other = (
        limit * (each.settings.get(spelling.data_parallel or "") or 1)
        if _is_number(limit := topic.told(each.settings))
        else None
        for each in (a, b)
    )
    return None if one is None or other is None else (one, other)


def _graphs(a: Serving, b: Serving, demand: Demand, spelling: Spelling, asked: frozenset[str]) -> str | None:
    if spelling.graphs is None or any(
        name.startswith((*spelling.graphs_off, *spelling.graphs.settings, *spelling.graphs_asked))
        for name in asked
    ):
        return None
    one, other = (largest_graph(each.settings, spelling) for each in (a, b))
    if one is None or other is None or (one >= demand.concurrency) == (other >= demand.concurrency):
        return None
    return (
        f"their CUDA graphs reach batches of {one} and {other} and {demand.concurrency} requests were sent; "
        f"to compare them, serve both with {spelling.graphs_reach}: {demand.concurrency}"
    )


def largest_graph(settings: Mapping[str, Any], spelling: Spelling) -> int | None:
    """Return the largest batch with recorded kernels; 0 where they are off, None where it is not told.

    ``settings``: in effect, by dotted name.
    """
    if spelling.graphs is None:
        return None
    if any(settings.get(name) is True for name in spelling.graphs_off):
        return 0
    sizes = spelling.graphs.told(settings)
    return max((int(n) for n in sizes), default=0) if isinstance(sizes, Sequence) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(f"{value.count(v)}x {v}" for v in dict.fromkeys(value)) or "none"
    return str(value)

"""What to serve at each load, and where that changes.

Beside the metric that decides, every workload is compared at every concurrency, and so is the study's
weighted mix of them wherever all of it was measured; what these verdicts promise is said beside them. Loads
are concurrencies: at a rate the arrivals set the throughput, see ``arrivals``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pivotbench.decision.contest import Contest
from pivotbench.decision.loads.crossings import crossings
from pivotbench.decision.loads.levels import Load, loads
from pivotbench.decision_rules import DecisionRules

Row = Mapping[str, Any]
Entry = Mapping[str, Any]

OPEN = ("undecided", "faster", "not_comparable")
STATEMENT = (
    "Exploratory: in each phase all verdicts by load hold together with {confidence:g} % confidence, a "
    "family of their own that takes nothing of the deciding metric's. The load that is the metric itself has "
    "the verdicts that decide, and pairs with the baseline of speculation have those told there"
)


def regions(
    rules: DecisionRules,
    states: Sequence[Contest],
    rows: Sequence[Row],
    base: str | None,
    speculation: Sequence[Entry],
) -> dict[str, Any]:
    """Return the ``regions`` of decision.json from the measurements of the evidence.

    ``base`` and ``speculation`` are those of ``loads``.
    """
    by_phase = [
        loads(rules, state, [row for row in rows if row["phase"] == state.phase], base, speculation)
        for state in states
    ]
    by_load = [_entry(load) for each in by_phase for load in each]
    places: dict[tuple[Any, Any], list[Entry]] = {}
    for entry in by_load:
        places.setdefault((entry["workload"], entry["concurrency"]), []).append(entry)
    return {
        "confidence": rules.confidence,
        "statement": STATEMENT.format(confidence=100 * rules.confidence),
        "by_load": by_load,
        "best": [_best(each) for each in places.values()],
        "crossings": [crossing for each in by_phase for crossing in crossings(each)],
    }


def _entry(load: Load) -> dict[str, Any]:
    others = [load.compare(name, load.best) for name in load.names if name != load.best]
    return {
        "phase": load.phase,
        **load.place_json,
        "decides": load.decides,
        "best": load.best,
        "mean_tok_s": load.mean(load.best),
        "standing": _standing([other.verdict for other in others]),
        "others": [
            {
                "configuration": other.a,
                "mean_tok_s": load.mean(other.a),
                "ratio": other.ratio,
                "ci": [other.ci.low, other.ci.high] if other.ci else None,
                "verdict": other.verdict,
            }
            for other in others
        ],
    }


def _standing(verdicts: Sequence[str]) -> str:
    """Whether the best is shown to be so: ``leads``, ``equivalent`` to some, ``undecided``, ``alone``."""
    if not verdicts:
        return "alone"
    if set(verdicts) <= {"slower"}:
        return "leads"
    return "equivalent" if set(verdicts) <= {"slower", "equivalent"} else "undecided"


def _best(entries: Sequence[Entry]) -> dict[str, Any]:
    """The best of both phases at one load, from what each phase says of it, in order.

    Where speculation does not pay, the first phase says what is best. Where it does, it was tried on one
    backend only: another is shown to be slower where the intervals of both phases say so together.
    """
    last = entries[-1]
    chosen, equal, open_ = last, _with(last, "equivalent"), _with(last, *OPEN)
    if len(entries) > 1:
        first, base = entries[0], last["best"].partition("+")[0]
        if last["best"] == f"{base}+none":
            chosen, equal = first, _with(first, "equivalent") + (equal if first["best"] == base else [])
            open_ += _with(first, *OPEN)
        else:
            open_ += _not_below(first, last, base)
    alone = all(entry["standing"] == "alone" for entry in entries)
    standing = "undecided" if open_ else "equivalent" if equal else "alone" if alone else "leads"
    return {
        "workload": last["workload"],
        "concurrency": last["concurrency"],
        "decides": last["decides"],
        "configuration": chosen["best"].removesuffix("+none"),
        "mean_tok_s": chosen["mean_tok_s"],
        "standing": standing,
        "equivalent": _plain(equal),
        "undecided": _plain(open_),
    }


def _with(entry: Entry, *verdicts: str) -> list[str]:
    return [other["configuration"] for other in entry["others"] if other["verdict"] in verdicts]


def _not_below(first: Entry, last: Entry, base: str) -> list[str]:
    """Backends of the first phase not shown to be slower than the best of the second, on ``base``.

    Best over other is the product of best over base and base over other, and no less than that of the lower
    ends of their intervals.
    """
    lead = next((o["ci"] for o in last["others"] if o["configuration"] == f"{base}+none"), None)
    found = {other["configuration"]: other["ci"] for other in first["others"]} | {first["best"]: (1.0, 1.0)}
    own = found.pop(base, None)
    if lead is None or own is None:
        return list(found)
    least = own[0] / lead[1]
    return [name for name, ci in found.items() if ci is None or least / ci[1] <= 1]


def _plain(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(name.removesuffix("+none") for name in names))

"""The decision in phrases: who leads, against whom, by how much, at what cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pivotbench.latency_limits import Goodput

Decision = Mapping[str, Any]
Row = Mapping[str, Any]

# Verdict on a workload, the first that any configuration has at any load.
_SPECULATION = {
    "pays": "pays on",
    "undecided": "is undecided on",
    "equal": "changes nothing on",
    "costs": "costs speed on",
}


def winner_line(decision: Decision) -> str:
    """Return who leads or wins, how fast, and who is not behind; or that nobody does."""
    winner = decision["winner"]
    if winner is None and decision["ranking"]:
        return "no winner yet: the rounds that would decide are missing"
    if winner is None:
        return "no winner: nothing is healthy and ranked"
    relaunched = f"{winner}+none"  # a winner without speculation is that phase's baseline
    names = (winner, relaunched)
    own = next((row for name in names for row in decision["ranking"] if row["configuration"] == name), None)
    speed = f" {'with' if own['at_least'] else 'at'} {speed_words(own)}" if own else ""
    rivals = verdicts_against(decision, winner) | verdicts_against(decision, relaunched)
    equals, open_, apart = (
        [name for name, row in rivals.items() if row["verdict"] == verdict]
        for verdict in ("equivalent", "undecided", "not_comparable")
    )
    also = f", equivalent to {', '.join(equals)}" if equals else ""
    unclear = f"; not told apart from {', '.join(open_)}" if open_ else ""
    unlike = f"; not comparable with {', '.join(apart)}" if apart else ""
    judged = all(part["judged"] for part in decision["agreement"])
    does = "leads" if open_ else "wins"
    return f"{winner} {does}{speed}{also}{unclear}{unlike}{'' if judged else '; its answers are not judged'}"


def backends_sentence(decision: Decision) -> str:
    """Return how many backends there were and which of them do not work."""
    dead = [row["configuration"] for row in decision["eliminated"] if row["phase"] == "backends"]
    ranked = {row["configuration"] for row in decision["ranking"] if row["phase"] == "backends"}
    tried = len(ranked.union(dead))
    if not tried:
        return "The study names the base of speculation, so no backends were compared."
    if dead:
        return f"Of {tried} backend{'s' if tried > 1 else ''} {len(dead)} failed: {', '.join(dead)}."
    return f"All {tried} backends work." if tried > 1 else "The one backend works."


def speculation_sentence(decision: Decision) -> str:
    """Return on which workloads speculation pays at any load, and where it does not or is open."""
    verdicts: dict[str, set[str]] = {}
    for row in decision["speculation"]:
        verdicts.setdefault(row["workload"], set()).add(row["verdict"])
    found: dict[str, list[str]] = {}
    for workload, seen in verdicts.items():
        found.setdefault(next(v for v in _SPECULATION if v in seen), []).append(workload)
    parts = [f"{words} {', '.join(found[v])}" for v, words in _SPECULATION.items() if v in found]
    return f"Speculation {' and '.join(parts)}." if parts else "Speculation was not measured."


def winner_phase(decision: Decision) -> tuple[list[Row], str | None]:
    """Return the ranking of the phase the winner comes from, and whom the others are compared with."""
    winner = decision["winner"]
    ranking = decision["ranking"]
    phase = next((r["phase"] for r in ranking if r["configuration"] == winner), "backends")
    rows = [row for row in ranking if row["phase"] == phase]
    return rows, compared_with(decision, rows)


def compared_with(decision: Decision, rows: Sequence[Row]) -> str | None:
    """Return whom a phase's rows are compared with: the winner, or else the first."""
    names = [row["configuration"] for row in rows]
    return decision["winner"] if decision["winner"] in names else names[0] if names else None


def verdicts_against(decision: Decision, name: str | None) -> dict[str, Row]:
    """Return the comparisons with ``name`` by the other's name, their verdicts being the other's."""
    turn = {"faster": "slower", "slower": "faster"}
    found = {}
    for row in decision["comparisons"]:
        if row["b"] == name:
            found[row["a"]] = row
        elif row["a"] == name:
            found[row["b"]] = {**row, "verdict": turn.get(row["verdict"], row["verdict"])}
    return found


def against(decision: Decision, name: str, reference: str | None) -> str:
    """Return a configuration's verdict against the reference, and the rounds that would likely tell."""
    row = verdicts_against(decision, reference).get(name)
    if row is None:
        return ""
    needed = row["rounds_needed"]
    more = f", about {needed} more round{'s' if needed > 1 else ''}" if needed else ""
    return str(row["verdict"]).replace("_", " ") + more


def mean_words(row: Row) -> str:
    """Return a mean with its interval and rounds."""
    rounds = f"{row['rounds']} round{'s' if row['rounds'] > 1 else ''}"
    if row["ci"] is None:
        return f"{speed_words(row)} ({rounds})"
    low, high = row["ci"]
    return f"{speed_words(row)} ({low:.1f} to {high:.1f}, {rounds})"


def speed_words(row: Row) -> str:
    """Return a mean in tokens a second; a lower bound is called one."""
    return f"{'at least ' if row['at_least'] else ''}{row['mean_tok_s']:.1f} tok/s"


def metric_words(decision: Decision) -> str:
    """Return what decides: the load, the workloads with their weights, the margin."""
    metric = decision["metric"]
    mix = ", ".join(f"{w} x {weight:g}" for w, weight in metric["workloads"].items())
    load = f"concurrency {metric['concurrency']}"
    if metric["goodput"]:
        goodput = Goodput.from_json(metric["goodput"])
        load = f"the largest {goodput.over} with {goodput.words}"
    return f"output tok/s at {load} ({mix}), margin {100 * metric['margin']:g} %"


def load_words(row: Row) -> str:
    """Return the load of a verdict on speculation."""
    return f"{row['workload']} at {row['concurrency']}"


def best_speculation(decision: Decision) -> list[Row]:
    """The fastest speculative configuration for each workload at the metric's concurrency, if it has one."""
    best: dict[str, Row] = {}
    for row in decision["speculation"]:
        if decision["metric"]["concurrency"] in (None, row["concurrency"]):
            held = best.get(row["workload"])
            if held is None or (row["speedup"] or 0) > (held["speedup"] or 0):
                best[row["workload"]] = row
    return [best[w] for w in sorted(best)][:3]


def speculation_line(row: Row) -> str:
    """Return the verdict on speculation with its speed-up and acceptance length."""
    if row["speedup"] is None or row["evidence"] != "text":
        return str(row["why"])
    interval = f" ({row['ci'][0]:.2f} to {row['ci'][1]:.2f})" if row["ci"] else ""
    length = f", {row['acceptance_length']:.2f} tokens a pass" if row["acceptance_length"] else ""
    return f"{row['verdict']}, {row['speedup']:.2f} times as fast{interval}{length}"


def spent_words(cost: Row) -> str:
    """Return what a campaign cost: GPU-hours, or seconds of servers without a GPU."""
    if cost["gpu_seconds"]:
        return f"{cost['gpu_seconds'] / 3600:.2f} GPU-hours"
    return f"{cost['server_seconds']:.0f} s of server time"


def where_words(environment: Row) -> str:
    """Return the hardware."""
    gpus = environment.get("gpus") or []
    if gpus:
        return f"{len(gpus)}x {gpus[0].get('name')}"
    return str(environment.get("cpu_model") or "unknown hardware")

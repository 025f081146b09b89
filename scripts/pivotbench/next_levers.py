"""What to try next: few rules, each from evidence, with the study snippet and what would refute it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pivotbench.contest import Contest
from pivotbench.decision_rules import DecisionRules

Entry = Mapping[str, Any]
AFFORDABLE_ROUNDS = 20


def next_levers(
    rules: DecisionRules,
    states: Sequence[Contest],
    comparisons: Sequence[Entry],
    speculation: Sequence[Entry],
    tried_speculation: bool,
) -> list[dict[str, str]]:
    """Return the levers that the evidence points to, most direct first."""
    found = [
        None if rules.speed_only else _text_workload(states),
        _second_round(rules, states),
        _more_rounds(rules, comparisons),
        _less_load(states),
        _split_by_workload(rules, speculation),
        _try_speculation(states, tried_speculation),
    ]
    return [lever for lever in found if lever is not None]


def _lever(lever: str, because: str, snippet: str, refuted_by: str) -> dict[str, str]:
    return {"lever": lever, "because": because, "snippet": snippet, "refuted_by": refuted_by}


def _text_workload(states: Sequence[Contest]) -> dict[str, str] | None:
    if not any(s.synthetic for s in states if s.phase == "speculative"):
        return None
    return _lever(
        "measure speculation on real text",
        "the metric's workload is random tokens, on which acceptance means nothing",
        "throughput:\n  workloads:\n"
        "    code: {kind: text, prompts: prompts/code.jsonl, output_tokens: 512, concurrency: [1]}\n"
        "decision:\n  metric: {workloads: {code: 1}, concurrency: 1}\n",
        "an equal or slower verdict for every speculative configuration on text",
    )


def _second_round(rules: DecisionRules, states: Sequence[Contest]) -> dict[str, str] | None:
    if all(s.noise is not None for s in states if len(s.ranked) > 1) or rules.rounds_max > 1:
        return None
    return _lever(
        "launch everything again",
        "with one launch of each configuration nobody knows what a relaunch alone changes",
        "decision:\n  rounds: {min: 2, max: 5}\n",
        "no configuration apart from another by more than its own launches are",
    )


def _more_rounds(rules: DecisionRules, comparisons: Sequence[Entry]) -> dict[str, str] | None:
    open_ = [c for c in comparisons if c["verdict"] == "undecided" and c["rounds_needed"]]
    cheap = [c for c in open_ if c["rounds_needed"] <= AFFORDABLE_ROUNDS]
    if not cheap:
        return None
    needed = max(c["rounds_needed"] for c in cheap)
    pairs = ", ".join(f"{c['a']} and {c['b']}" for c in cheap[:3])
    return _lever(
        f"add {needed} round{'s' if needed > 1 else ''}",
        f"undecided and likely to be settled by that: {pairs}",
        f"decision:\n  rounds: {{min: {rules.rounds_min}, max: {rules.rounds_max + needed}}}\n",
        "the same pairs still undecided after them: the difference is smaller than it looks now",
    )


def _less_load(states: Sequence[Contest]) -> dict[str, str] | None:
    bound = sorted({n for s in states for n in s.alive if "client_bound" in s.subjects[n].unranked.values()})
    if not bound:
        return None
    return _lever(
        "leave the load generator more of the machine",
        f"it may have limited {', '.join(bound)}",
        "serve: {threads: 1}   # or run the engine on fewer cores\n",
        "rounds still marked client_bound",
    )


def _split_by_workload(rules: DecisionRules, speculation: Sequence[Entry]) -> dict[str, str] | None:
    verdicts: dict[str, dict[str, set[str]]] = {}
    for entry in speculation:
        where = f"{entry['workload']} at {entry['concurrency']}"
        verdicts.setdefault(entry["configuration"], {}).setdefault(entry["verdict"], set()).add(where)
    for name, by_verdict in sorted(verdicts.items()):
        good, bad = by_verdict.get("pays", set()), by_verdict.get("costs", set())
        if good and bad:
            workload = sorted(good)[0].split(" at ")[0]
            return _lever(
                f"serve {workload} apart, with {name}",
                f"{name} pays on {', '.join(sorted(good))} and costs on {', '.join(sorted(bad))}",
                f"decision:\n  metric: {{workloads: {{{workload}: 1}}, "
                f"concurrency: {rules.metric_concurrency}}}\n",
                f"{name} not faster than its baseline on that metric",
            )
    return None


def _try_speculation(states: Sequence[Contest], tried: bool) -> dict[str, str] | None:
    if tried or not any(s.ranked for s in states):
        return None
    return _lever(
        "try speculative decoding",
        "a backend works and no speculative configuration was measured on it",
        "speculative:\n  ngram: {speculative-algorithm: NGRAM}   # flags of your engine\n",
        "an equal or costs verdict on every workload of the metric",
    )

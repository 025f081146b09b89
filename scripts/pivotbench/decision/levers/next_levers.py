"""What to try next, each from evidence, with the study snippet and what would refute it.

First what would make the decision firm, then what may be faster than the winner (see bottlenecks).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pivotbench.decision.contest import Contest
from pivotbench.decision.levers.bottlenecks import NEAR
from pivotbench.decision.levers.goodput import goodput_levers
from pivotbench.decision.levers.lever import Lever, lever
from pivotbench.decision.out_of_turn import side_by_side
from pivotbench.decision_rules import DecisionRules
from pivotbench.engines import get_engine
from pivotbench.engines.spelling import Spelling
from pivotbench.figures import names

Entry = Mapping[str, Any]
AFFORDABLE_ROUNDS = 20
SIDE_BY_SIDE = 2  # rounds that decide a pair by themselves
MOST_ROUNDS = 100  # what a study may ask for
_CODE = {"kind": "text", "prompts": "prompts/code.jsonl", "output_tokens": 512, "concurrency": [1]}


def next_levers(
    rules: DecisionRules,
    states: Sequence[Contest],
    comparisons: Sequence[Entry],
    speculation: Sequence[Entry],
    faster: Sequence[Lever],
    limit: Entry,
) -> list[Lever]:
    """Return the levers that the evidence points to, most direct first.

    ``faster``: those on the winner's speed; ``limit``: how far it is from the roofline.
    """
    spelling = get_engine(rules.engine).spelling
    found = [
        None if rules.speed_only else _text_workload(states),
        _same_terms(states, comparisons, spelling),
        _side_by_side(rules, states),
        _second_round(rules, states),
        _more_rounds(rules, comparisons),
        _less_load(states, spelling),
        *goodput_levers(rules, states),
        *faster,
        _split_by_workload(rules, speculation),
        _try_speculation(states, limit, spelling),
    ]
    return [each for each in found if each is not None]


def _text_workload(states: Sequence[Contest]) -> Lever | None:
    if not any(s.synthetic for s in states if s.phase == "speculative"):
        return None
    return lever(
        "measure speculation on real text",
        "the metric's workload is random tokens, on which acceptance means nothing",
        {
            "throughput": {"workloads": {"code": _CODE}},
            "decision": {"metric": {"workloads": {"code": 1}, "concurrency": 1}},
        },
        "an equal or slower verdict for every speculative configuration on text",
    )


def _same_terms(states: Sequence[Contest], comparisons: Sequence[Entry], spelling: Spelling) -> Lever | None:
    reasons = [c["reason"] or "" for c in comparisons if c["verdict"] == "not_comparable"]
    asked = (spelling.requests.flag if spelling.requests else None, spelling.graphs_reach)
    flags = {flag for flag in asked if flag and any(f" {flag}: " in reason for reason in reasons)}
    if not flags:
        return None
    return lever(
        "serve all on the same terms",
        next(reason for reason in reasons if any(f" {flag}: " in reason for flag in flags)),
        {"serve": dict.fromkeys(sorted(flags), max(s.demand.concurrency for s in states))},
        "the same pairs still not comparable",
    )


def _side_by_side(rules: DecisionRules, states: Sequence[Contest]) -> Lever | None:
    needed = last = 0
    apart: dict[str, None] = {}
    for state in states:
        for pair in state.out_of_turn:
            a, b = (state.subjects[name].serving.begun for name in pair)
            if (missing := SIDE_BY_SIDE - side_by_side(a, b)) > 0:
                begun = (n for subject in state.subjects.values() for n in subject.serving.begun)
                needed, last = max(needed, missing), max(last, *begun)
                apart |= dict.fromkeys(pair)
    if not needed or (least := last + needed) > MOST_ROUNDS:
        return None
    return lever(
        f"measure {names(list(apart))} side by side",
        "their rounds were measured one after the other: what changed meanwhile is in their ratios",
        {"decision": {"rounds": {"min": least, "max": max(rules.rounds_max, least)}}},
        "ratios in the new rounds that are those of the old ones",
    )


def _second_round(rules: DecisionRules, states: Sequence[Contest]) -> Lever | None:
    if all(s.noise is not None for s in states if len(s.ranked) > 1) or rules.rounds_max > 1:
        return None
    return lever(
        "launch everything again",
        "with one launch of each configuration nobody knows what a relaunch alone changes",
        {"decision": {"rounds": {"min": 2, "max": 5}}},
        "no configuration apart from another by more than its own launches are",
    )


def _more_rounds(rules: DecisionRules, comparisons: Sequence[Entry]) -> Lever | None:
    open_ = [c for c in comparisons if c["verdict"] == "undecided" and c["rounds_needed"]]
    cheap = [c for c in open_ if c["rounds_needed"] <= AFFORDABLE_ROUNDS]
    if not cheap:
        return None
    most = min(MOST_ROUNDS, rules.rounds_max + max(c["rounds_needed"] for c in cheap))
    if (needed := most - rules.rounds_max) < 1:
        return None
    pairs = ", ".join(f"{c['a']} and {c['b']}" for c in cheap[:3])
    return lever(
        f"add {needed} round{'s' if needed > 1 else ''}",
        f"undecided and likely to be settled by that: {pairs}",
        {"decision": {"rounds": {"min": rules.rounds_min, "max": most}}},
        "the same pairs still undecided after them: the difference is smaller than it looks now",
    )


def _less_load(states: Sequence[Contest], spelling: Spelling) -> Lever | None:
    bound = sorted({n for s in states for n in s.alive if "client_bound" in s.subjects[n].unranked.values()})
    flags = spelling.remedies.get("spare_client")
    if not bound or flags is None:
        return None
    return lever(
        "leave the load generator more of the machine",
        f"it may have limited {', '.join(bound)}",
        {"serve": dict(flags)},
        "rounds still marked client_bound",
    )


def _split_by_workload(rules: DecisionRules, speculation: Sequence[Entry]) -> Lever | None:
    verdicts: dict[str, dict[str, set[str]]] = {}
    for entry in speculation:
        where = f"{entry['workload']} at {entry['concurrency']}"
        verdicts.setdefault(entry["configuration"], {}).setdefault(entry["verdict"], set()).add(where)
    for name, by_verdict in sorted(verdicts.items()):
        good, bad = by_verdict.get("pays", set()), by_verdict.get("costs", set())
        if good and bad:
            workload = sorted(good)[0].split(" at ")[0]
            return lever(
                f"serve {workload} apart, with {name}",
                f"{name} pays on {', '.join(sorted(good))} and costs on {', '.join(sorted(bad))}",
                {"decision": {"metric": {"workloads": {workload: 1}, **rules.pace}}},
                f"{name} not faster than its baseline on that metric",
            )
    return None


def _try_speculation(states: Sequence[Contest], limit: Entry, spelling: Spelling) -> Lever | None:
    tried = any(s.subjects for s in states if s.phase == "speculative")
    flags = spelling.remedies.get("speculate")
    if tried or flags is None or not any(s.ranked for s in states):
        return None
    roof = ""
    if limit["share"] is not None and limit["share"] >= NEAR:
        roof = "; only more tokens a pass go beyond what memory bandwidth allows"
    return lever(
        "try speculative decoding",
        f"a backend works and no speculative configuration was measured on it{roof}",
        {"speculative": {"drafts": dict(flags)}},
        "an equal or costs verdict on every workload of the metric",
    )

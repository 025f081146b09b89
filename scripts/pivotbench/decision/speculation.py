"""Whether speculative decoding pays: speed-up, acceptance, cost of a step, and one plain sentence.

With L output tokens per target pass (acceptance length) and r the time of a speculative pass over the
baseline's time per token (step cost ratio), speed-up of decoding = L / r: it pays where L > r, so r is
also the break-even acceptance length. Leviathan et al. (2023), https://arxiv.org/abs/2211.17192.

The speed-up and its interval come from the model of ``statistics``, fitted to all configurations of the
phase on that workload and concurrency: the baseline is relaunched in every round, so drift cancels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pivotbench.decision.comparison import Comparison, Subject, Yardstick, compare
from pivotbench.decision.contest import Contest
from pivotbench.decision.fairness import confounders, demand_of, unfair
from pivotbench.decision.metric import unrankable, window_mean
from pivotbench.decision.reference_acceptance import beside_published
from pivotbench.decision.spending import Risk
from pivotbench.decision.statistics import fit, geometric_mean
from pivotbench.decision_rules import DecisionRules

Row = Mapping[str, Any]
Load = tuple[str, int]
VERDICTS = {"faster": "pays", "slower": "costs", "equivalent": "equal"}
REJECTED = 0.5  # below this share of accepted drafts, rejection is named as the cause


def speculation(
    rules: DecisionRules, state: Contest, baseline: str | None, rows: Iterable[Row]
) -> list[dict[str, Any]]:
    """Return one entry for each speculative configuration alive, workload and concurrency.

    ``rows``: measurements of the speculative phase. The error rate is divided over these entries and the
    looks: they are a family of their own, apart from the metric that decides.
    """
    cells: dict[Load, dict[str, dict[int, list[Row]]]] = {}
    for row in rows:
        # At a rate the arrivals set the speed, not the server.
        if row["configuration"] in state.alive and row["concurrency"] is not None:
            load = (row["workload"], row["concurrency"])
            rounds = cells.setdefault(load, {}).setdefault(row["configuration"], {})
            rounds.setdefault(row["round"], []).append(row)
    entries = sum(len(by_name.keys() - {baseline}) for by_name in cells.values())
    risk = Risk.against_baseline(rules.confidence, entries, rules.rounds_min, rules.rounds_max)
    return [
        _entry(rules, state, name, baseline, load, by_name, risk)
        for load, by_name in sorted(cells.items())
        if baseline in by_name and baseline is not None
        for name in sorted(by_name.keys() - {baseline})
    ]


def acceptance_length(runs: Iterable[Row]) -> float | None:
    """Return output tokens / target passes over several runs; None where it was not reported.

    Runs are weighted by their tokens, so that a short run does not count like a long one. None is not 1:
    a server that reports nothing has not said that every draft was rejected.
    """
    tokens = passes = 0.0
    for run in runs:
        if run["acceptance_length"] and run["output_tokens"]:
            tokens += run["output_tokens"]
            passes += run["output_tokens"] / run["acceptance_length"]
    return tokens / passes if passes else None


def _entry(
    rules: DecisionRules,
    state: Contest,
    name: str,
    baseline: str,
    load: Load,
    by_name: Mapping[str, Mapping[int, Sequence[Row]]],
    risk: Risk,
) -> dict[str, Any]:
    values = {n: _ranked_means(rounds) for n, rounds in by_name.items()}
    by = Yardstick(fit({n: v for n, v in values.items() if v}), risk, rules.margin, None, state.by.prior_sd)
    own, base = (_subject(state.subjects[n], values[n], by_name[n]) for n in (name, baseline))
    result = compare(own, base, by)
    sent = demand_of(
        (row for rounds in by_name.values() for w in rounds.values() for row in w), [load[0]], load[1]
    )
    if result.verdict != "not_comparable" and (
        reason := unfair(own.serving, base.serving, sent, state.spelling)
    ):
        result = replace(result, verdict="not_comparable", rounds_needed=None, reason=reason)
    runs = [windows[0] for windows in by_name[name].values()]
    length = acceptance_length(runs)
    cost = _step_cost_ratio(length, by_name[name], by_name[baseline])
    evidence = _evidence(runs)
    facts = {
        "acceptance_length": length,
        "draft_proposed": _total(runs, "draft_proposed"),
        "draft_accepted": _total(runs, "draft_accepted"),
        "step_cost_ratio": cost,
        "break_even": cost,
        "derived": not all(run["acceptance_counted"] for run in runs),
    }
    verdict = VERDICTS.get(result.verdict, "undecided") if evidence == "text" else "undecided"
    return {
        "configuration": name,
        "baseline": baseline,
        "workload": load[0],
        "concurrency": load[1],
        "speedup": result.ratio,
        "ci": [result.ci.low, result.ci.high] if result.ci else None,
        **facts,
        "evidence": evidence,
        "verdict": verdict,
        "rounds_needed": result.rounds_needed if evidence == "text" else None,
        "confounders": list(confounders(own.serving, base.serving, state.spelling)),
        "why": _why(verdict, evidence, result, facts) + _published(rules, verdict, evidence, own, facts),
    }


def _ranked_means(rounds: Mapping[int, Sequence[Row]]) -> dict[int, float]:
    means = {r: window_mean(w) for r, w in rounds.items() if unrankable(w) is None}
    return {r: value for r, value in means.items() if value > 0}


def _subject(whole: Subject, rounds: dict[int, float], measured: Mapping[int, Sequence[Row]]) -> Subject:
    unranked = {r: unrankable(w) or "no tokens in a run" for r, w in measured.items() if r not in rounds}
    return replace(whole, rounds=rounds, unranked=unranked)


def _step_cost_ratio(
    length: float | None, own: Mapping[int, Sequence[Row]], base: Mapping[int, Sequence[Row]]
) -> float | None:
    """L x TPOT of speculation / TPOT of the baseline, the ratio over the rounds both ran in."""
    ratios = [
        own[r][0]["tpot_mean_seconds"] / base[r][0]["tpot_mean_seconds"]
        for r in own.keys() & base.keys()
        if own[r][0]["tpot_mean_seconds"] and base[r][0]["tpot_mean_seconds"]
    ]
    return length * geometric_mean(ratios) if length is not None and ratios else None


def _evidence(runs: Sequence[Row]) -> str:
    if any(run["simulated"] for run in runs):
        return "simulated"
    meant = all(run["kind"] == "text" and not run["speed_only"] for run in runs)
    return "text" if meant else "synthetic"


def _total(runs: Sequence[Row], column: str) -> int | None:
    reported = [run[column] for run in runs if run[column] is not None]
    return int(math.fsum(reported)) if reported else None


def _why(verdict: str, evidence: str, result: Comparison, facts: Mapping[str, Any]) -> str:
    if evidence == "synthetic":
        return (
            "undecided: random tokens, or text that nobody judged, cannot judge speculation: acceptance "
            "depends on the text"
        )
    if evidence == "simulated":
        return "undecided: the server simulated acceptance, real drafts may fare otherwise"
    if result.verdict == "not_comparable" or result.ratio is None:
        return f"undecided: {result.reason}"
    speed = f"{result.ratio:.2f} times the baseline's speed"
    if result.ci:
        speed += f" ({result.ci.low:.2f} to {result.ci.high:.2f})"
    if verdict == "undecided":
        more = result.rounds_needed
        hint = f"; about {more} more round{'s' if more != 1 else ''} would likely tell" if more else ""
        return f"undecided: {speed}; {result.reason}{hint}"
    return f"{verdict}: {speed}; {_cause(verdict, facts)}"


def _published(
    rules: DecisionRules, verdict: str, evidence: str, own: Subject, facts: Mapping[str, Any]
) -> str:
    length = facts["acceptance_length"]
    if length is None or facts["derived"] or evidence != "text":
        return ""
    settings = {**own.serving.effective, **own.serving.requested}
    clause = beside_published(rules.model, settings, length, without_gain=verdict in ("costs", "equal"))
    return f"; {clause}" if clause else ""


def _cause(verdict: str, facts: Mapping[str, Any]) -> str:
    proposed, accepted = facts["draft_proposed"], facts["draft_accepted"]
    length, cost = facts["acceptance_length"], facts["step_cost_ratio"]
    if proposed == 0:
        return "nothing was drafted"
    counted = "the server reported no drafts"
    if proposed is not None and accepted is not None:
        counted = f"{accepted} of {proposed} drafted tokens were accepted"
    if facts["derived"] or length is None or cost is None:
        return f"{counted}; passes were not counted, so no cause is claimed"
    balance = f"a pass gives {length:.2f} tokens and costs {cost:.2f} plain steps"
    if verdict == "pays":
        return f"{balance}; {counted}"
    if proposed and accepted is not None and accepted / proposed < REJECTED:
        return f"drafts are rejected: {counted}, {balance}"
    if verdict == "costs":
        return f"verification is too dear: {balance}, although {counted}"
    return f"{balance}; {counted}"

"""decision.json: the winner, the evidence for it, and what remains open."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import Any

from pivotbench.agreement import baseline
from pivotbench.decision.classes import classes
from pivotbench.decision.comparison import Comparison
from pivotbench.decision.contest import Contest, contest
from pivotbench.decision.cost import cost
from pivotbench.decision.document import validated
from pivotbench.decision.hypotheses import hypotheses
from pivotbench.decision.levers.bottlenecks import held_back
from pivotbench.decision.levers.next_levers import next_levers
from pivotbench.decision.levers.roofline import limit
from pivotbench.decision.loads.arrivals import under_arrivals
from pivotbench.decision.loads.pareto import pareto
from pivotbench.decision.loads.regions import regions
from pivotbench.decision.racing import Race, prior_sd
from pivotbench.decision.speculation import speculation
from pivotbench.decision.statistics import mean_interval
from pivotbench.decision.threats import threats
from pivotbench.decision_rules import DecisionRules
from pivotbench.evidence import CellFiles
from pivotbench.measurements import rows
from pivotbench.results import DECISION_SCHEMA


def decide(rules: DecisionRules, races: Sequence[Race], cells: Iterable[CellFiles]) -> dict[str, Any]:
    """Return the decision as JSON values of the shape in decision.document.

    ``races``: all race files of the study, both phases. Only cells that a race asked for are evidence;
    a phase without races contributes nothing. Raises pydantic.ValidationError for a bug of ours.
    """
    used = _evidence(races, cells)
    table = rows(used)
    backends, speculative = (
        contest(rules, phase, used, prior_sd(phase, races), table) for phase in ("backends", "speculative")
    )
    base = _base(rules, races, speculative)
    reference = baseline(speculative.alive)
    judged = _judged(speculative, reference)
    kept = [row for row in judged if row["a"] not in speculative.agreement.changed]
    winner, choice = _choose(base, reference, judged, speculative)
    entries = speculation(rules, speculative, reference, [r for r in table if r["phase"] == "speculative"])
    states = (backends, speculative)
    groups = [group for state in states for group in classes(state)]
    compared = [*_listed(backends, groups, base), *_listed(speculative, groups, winner, reference)]
    last = _last_cell(used, winner, reference)
    limited = limit(rules, last, table)
    arrived = under_arrivals(used, [each for state in states for each in _healthy(state)])
    faster = held_back(rules, last, limited, arrived, entries, used, table)
    hosts = frozenset(str(c.environment["host"]) for c in used if c.environment.get("host"))
    return validated(
        {
            "schema": DECISION_SCHEMA,
            "study": rules.study,
            "engine": rules.engine,
            "model": rules.model,
            "metric": {
                "workloads": dict(rules.metric_weights),
                "concurrency": rules.metric_concurrency,
                "goodput": rules.goodput.to_json() if rules.goodput else None,
                "margin": rules.margin,
                "confidence": rules.confidence,
            },
            "environment": last.environment if last else {},
            "confidence": _confidence(rules, states),
            "winner": winner,
            "launch_command": _command(last),
            "runner_up": _runner_up(states, used, winner),
            "ranking": [row for state in states for row in _ranking(rules, state)],
            "classes": groups,
            "comparisons": compared,
            "eliminated": [e for state in states for e in state.eliminated],
            "agreement": [state.agreement.table for state in states if state.agreement.table],
            "speculation": entries,
            "regions": regions(rules, states, table, base, entries),
            "pareto": pareto(rules, states, table),
            "open_loop": arrived,
            "limit": limited,
            "hypotheses": hypotheses(
                rules, states, kept, entries, used, last.configuration if last else None
            ),
            "next_levers": next_levers(rules, states, compared, entries, faster, limited),
            "threats": threats(rules, states, table, compared, hosts),
            "cost": cost(used, rules.gpus, rules.rounds_max),
            "evidence": _rounds_of(used),
            "log": [*(line for race in races for line in race["log"]), *_answers(states), choice],
        }
    )


def _evidence(races: Sequence[Race], cells: Iterable[CellFiles]) -> list[CellFiles]:
    """The cells that the last race of each phase names."""
    last = {race["phase"]: race for race in sorted(races, key=lambda r: int(r["round"]))}
    named = {
        (phase, entry["configuration"], n)
        for phase, race in last.items()
        for entry in race["evidence"]
        for n in entry["rounds"]
    }
    return [c for c in cells if (c.phase, c.configuration, c.round) in named]


def _rounds_of(cells: Sequence[CellFiles]) -> list[dict[str, Any]]:
    rounds: dict[tuple[str, str], list[int]] = {}
    for cell in cells:
        rounds.setdefault((cell.phase, cell.configuration), []).append(cell.round)
    return [
        {"phase": phase, "configuration": name, "rounds": sorted(rounds[phase, name])}
        for phase, name in sorted(rounds)
    ]


def _healthy(state: Contest) -> list[tuple[str, str]]:
    """The phase and name of all that work, the ranked ones first."""
    return [(state.phase, name) for name in dict.fromkeys((*state.ranked, *state.alive))]


def _base(rules: DecisionRules, races: Sequence[Race], speculative: Contest) -> str | None:
    """The base of phase two; one that the study pins has to prove itself as the phase's baseline."""
    if rules.speculative_base is not None:
        return rules.speculative_base if baseline(speculative.ranked) else None
    chosen = [race["base"] for race in races if race["phase"] == "backends" and race["ended"]]
    return chosen[-1] if chosen else None


def _judged(state: Contest, reference: str | None) -> list[dict[str, Any]]:
    """Each speculative configuration against the baseline on the study's metric."""
    if reference is None:
        return []
    return [
        _comparison_row(state.phase, state.compare(name, reference))
        for name in state.alive
        if name != reference
    ]


def _choose(
    base: str | None, reference: str | None, judged: Sequence[dict[str, Any]], state: Contest
) -> tuple[str | None, str]:
    """Return the winner and the log line that says why.

    Speculation that is shown to change the greedy text is never chosen: it no longer gives the model's
    answers.
    """
    if base is None:
        return None, "decision: no winner, no backend is healthy and ranked"
    if not state.subjects:
        return base, f"decision: {base} wins; no speculative configuration was measured"
    if reference is None:
        return base, f"decision: {base} wins; its relaunch as baseline of speculation failed"
    faster = [c for c in judged if c["verdict"] == "faster" and c["a"] in state.ranked]
    changed = [c["a"] for c in faster if c["a"] in state.agreement.changed]
    faster = [c for c in faster if c["a"] not in changed]
    if changed and not faster:
        return base, (
            f"decision: {base} wins; {', '.join(changed)} {'is' if len(changed) == 1 else 'are'} faster, but "
            "not chosen: the greedy text is another than the baseline's"
        )
    if faster:
        best = min(faster, key=lambda c: state.ranked.index(c["a"]))
        return best["a"], (
            f"decision: {best['a']} wins, {best['ratio']:.2f} times its baseline on the metric "
            f"({best['ci'][0]:.2f} to {best['ci'][1]:.2f})"
        )
    if not judged:
        return base, f"decision: {base} wins; no speculative configuration works on it"
    open_ = [c["a"] for c in judged if c["verdict"] in ("undecided", "not_comparable")]
    still = f"; undecided: {', '.join(open_)}" if open_ else ""
    return base, f"decision: {base} wins; no speculative configuration is shown to be faster{still}"


def _listed(state: Contest, groups: Sequence[dict[str, Any]], *against: str | None) -> list[dict[str, Any]]:
    """Everyone alive against the leader, the winner and the baseline; and the pairs that make classes."""
    pairs: dict[tuple[str, str], None] = {}
    for rival in dict.fromkeys((state.leader, *against)):
        if rival in state.subjects and rival is not None:
            for name in (*state.ranked, *(n for n in state.alive if n not in state.ranked)):
                if name != rival and (rival, name) not in pairs:
                    pairs[name, rival] = None
    for group in groups:
        for member in group["members"][1:] if group["phase"] == state.phase else ():
            if (group["leader"], member) not in pairs:
                pairs[member, group["leader"]] = None
    return [_comparison_row(state.phase, state.compare(a, b)) for a, b in pairs]


def _comparison_row(phase: str, result: Comparison) -> dict[str, Any]:
    return {
        "phase": phase,
        "a": result.a,
        "b": result.b,
        "ratio": result.ratio,
        "ci": [result.ci.low, result.ci.high] if result.ci else None,
        "verdict": result.verdict,
        "rounds_needed": result.rounds_needed,
        "confounders": list(result.confounders),
        "reason": result.reason,
    }


def _ranking(rules: DecisionRules, state: Contest) -> list[dict[str, Any]]:
    ranking = []
    noise = state.level_noise
    for name in state.ranked:
        values = state.subjects[name].rounds
        mean = state.mean(name)
        interval = mean_interval(mean, len(values), noise, 1 - rules.confidence) if noise else None
        ranking.append(
            {
                "phase": state.phase,
                "configuration": name,
                "mean_tok_s": state.mean(name),
                "ci": [interval.low, interval.high] if interval else None,
                "rounds": len(values),
                "by_round": [{"round": n, "tok_s": values[n]} for n in sorted(values)],
                "at_least": state.subjects[name].at_least,
                "at_most": state.subjects[name].at_most,
                "between": state.subjects[name].between,
                "largest_load": state.largest_loads.get(name),
            }
        )
    return ranking


def _answers(states: Sequence[Contest]) -> list[str]:
    """What each phase's answers were held against, as lines of the log."""
    tables = [state.agreement.table for state in states]
    return [f"{table['phase']}: {table['statement']}" for table in tables if table is not None]


def _confidence(rules: DecisionRules, states: Sequence[Contest]) -> dict[str, Any]:
    shown = [s for s in states if s.subjects]
    return {
        "looks": rules.looks,
        "comparisons": {s.phase: s.comparisons for s in shown},
        "noise": {s.phase: {"sd": s.noise.sd, "df": s.noise.df} if s.noise else None for s in shown},
        "statement": (
            "In each phase all verdicts on the metric hold together, at every look, with "
            f"{100 * rules.confidence:g} % confidence, if launches of all healthy configurations are "
            "independent and spread alike (risk divided over pairs, spent over looks, Student's t). "
            "The verdicts of speculation by workload and concurrency are a family of their own, and so are "
            "those by load."
        ),
    }


def _last_cell(cells: Sequence[CellFiles], winner: str | None, reference: str | None) -> CellFiles | None:
    """The winner's last measured cell; for a pinned base that is the baseline's."""
    for name in (winner, reference if winner else None):
        own = [c for c in cells if c.measured and c.configuration == name]
        if own:
            return max(own, key=lambda c: c.round)
    return None


def _runner_up(
    states: Sequence[Contest], used: Sequence[CellFiles], winner: str | None
) -> dict[str, Any] | None:
    """The fastest of those that were ranked with the winner and could have been chosen, and its command."""
    for state in states:
        if winner in state.ranked:
            for name in state.ranked:
                if name != winner and name not in state.agreement.changed:
                    return {"configuration": name, "launch_command": _command(_last_cell(used, name, None))}
    return None


def _command(cell: CellFiles | None) -> str | None:
    """The command to paste: the study's part, without what is added to every launch."""
    argv = (((cell.launch if cell else None) or {}).get("command") or {}).get("study")
    return shlex.join(argv) if argv else None

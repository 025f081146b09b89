"""Who still needs another round of a phase, and when to stop looking."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pivotbench.agreement import baseline
from pivotbench.decision.classes import classes
from pivotbench.decision.comparison import Comparison
from pivotbench.decision.contest import Contest, contest
from pivotbench.decision.cost import over_budget, server_seconds
from pivotbench.decision.metric import LASTING
from pivotbench.decision_rules import DecisionRules
from pivotbench.evidence import CellFiles
from pivotbench.turns import round_order

SCHEMA = "pivotbench/race/1"
ASSUMED_SD = 0.01
NOTHING_OPEN = "nothing is left that further rounds could decide"
Race = Mapping[str, Any]


def judge_round(
    rules: DecisionRules,
    phase: str,
    round_: int,
    cells: Iterable[CellFiles],
    previous_races: Sequence[Race] = (),
    previous_base: str | None = None,
) -> dict[str, Any]:
    """Return the content of race/<phase>.r<round_>.json.

    ``cells``: at least the cells the race asked for up to this round. ``previous_races``: the races of
    earlier rounds and phases. ``previous_base``: what an earlier run chose as base of phase two; it is kept
    while it stays in the best class, so that a coin toss between equals does not cost a whole phase.

    Until the study's minimum of rounds everyone not eliminated runs again. Then those run again who are
    undecided against the best (in phase two also against the baseline) and worth it, with the best and the
    baseline themselves, since a ratio needs both in the same rounds. Losers, the broken and proven equals
    stop, and so does whoever the rounds left would hardly settle and who would hardly be the better choice:
    stopping for futility, Lan, Simon and Halperin (1982), https://doi.org/10.1080/07474948208836014.
    """
    asked = evidence_cells(phase, round_, cells, previous_races)
    state = contest(rules, phase, asked, prior_sd=prior_sd(phase, previous_races))
    again, why = _who_runs_again(rules, state, round_)
    before = _spent_before(phase, previous_races)
    if again and (reason := over_budget(rules.gpu_hours, rules.gpus, asked, before, sorted(again))):
        again, why = set(), f"{reason}; {why}"
    ended = not again
    base = None
    if ended and phase == "backends":
        base = _base(state, previous_base)
    standings = [_standing(state, name) for name in (*state.ranked, *_unranked(state))]
    return {
        "schema": SCHEMA,
        "phase": phase,
        "round": round_,
        "evidence": _evidence(asked),
        "next": round_order(rules.study, phase, round_ + 1, again),
        "ended": ended,
        "why": why,
        "base": base,
        "noise": None if state.noise is None else {"sd": state.noise.sd, "df": state.noise.df},
        "server_seconds": math.fsum(map(server_seconds, asked)),
        "standings": standings,
        "eliminated": [e["configuration"] for e in state.eliminated],
        "log": _log(state, round_, why, base, previous_base, _known_out(phase, previous_races)),
    }


def evidence_cells(
    phase: str, round_: int, cells: Iterable[CellFiles], races: Sequence[Race]
) -> list[CellFiles]:
    """Return the cells of a phase that its race asked for, up to and including ``round_``.

    Other files on disk (a round run by hand, an older race) are not evidence.
    """
    allowed = {(r["round"] + 1, name) for r in races if r["phase"] == phase for name in r["next"]}
    return [
        c
        for c in cells
        if c.phase == phase and c.round <= round_ and (c.round == 1 or (c.round, c.configuration) in allowed)
    ]


def prior_sd(phase: str, races: Sequence[Race]) -> float:
    """Return the sd between launches to reckon with until relaunches show it; verdicts never rest on it.

    That of phase one for phase two; for phase one itself what servers of large models commonly show.
    """
    noises = [r["noise"] for r in races if r["phase"] == "backends" and r["noise"] is not None]
    return float(noises[-1]["sd"]) if noises and phase == "speculative" else ASSUMED_SD


def _spent_before(phase: str, races: Sequence[Race]) -> float:
    """Server-seconds of the phases before this one."""
    last = {r["phase"]: float(r.get("server_seconds", 0)) for r in races if r["phase"] != phase}
    return math.fsum(last.values())


def _who_runs_again(rules: DecisionRules, state: Contest, round_: int) -> tuple[set[str], str]:
    alive = set(state.alive)
    reference = baseline(alive) if state.phase == "speculative" else None
    if not alive:
        return set(), "nothing is healthy: every configuration was eliminated"
    if state.phase == "speculative" and reference is None:
        return set(), "the baseline does not work, so nothing can be compared with it"
    if state.phase == "speculative" and alive == {reference}:
        return set(), "no speculative configuration is left to compare with the baseline"
    if round_ >= rules.rounds_max:
        return set(), _limit(state, reference, round_)
    if round_ < rules.rounds_min:
        return alive, f"round {round_} of at least {rules.rounds_min}: everyone healthy runs again"
    if len(alive) == 1:
        return set(), f"only {state.alive[0]} is healthy"
    open_ = _undecided(state, reference)
    if not open_:
        return set(), NOTHING_OPEN
    left = rules.rounds_max - round_
    rivals = [n for n in (state.leader, reference) if n is not None]
    worth = {n for n in open_ if not rivals or any(_worth(state, n, rival, left) for rival in rivals)}
    stopped = (
        f"{left} more round{'s' if left > 1 else ''} would hardly decide {', '.join(sorted(open_ - worth))}"
    )
    if not worth:
        return set(), f"undecided, but {stopped}"
    also = f"; {stopped}" if open_ - worth else ""
    return worth | set(rivals), f"undecided: {', '.join(sorted(worth))}{also}"


def _undecided(state: Contest, reference: str | None) -> set[str]:
    rivals = [n for n in (state.leader, reference) if n is not None]
    found = set()
    for name in state.alive:
        subject = state.subjects[name]
        if not subject.rounds and (subject.at_most or set(LASTING) & set(subject.unranked.values())):
            continue  # the next round would miss the limits, or not be ranked, either
        if not rivals or any(_open(state, name, rival) for rival in rivals):
            found.add(name)
    return found


def _open(state: Contest, name: str, rival: str) -> bool:
    if name == rival or state.unjudgeable(name, rival):
        return False
    return state.verdict(name, rival) == "undecided"


def _worth(state: Contest, name: str, rival: str, left: int) -> bool:
    return _open(state, name, rival) and state.worth_rounds(name, rival, left)


def _limit(state: Contest, reference: str | None, round_: int) -> str:
    open_ = sorted(_undecided(state, reference) - {state.leader})
    if not open_:
        return NOTHING_OPEN
    return f"limit of {round_} round{'s' if round_ > 1 else ''} reached; still undecided: {', '.join(open_)}"


def _base(state: Contest, previous: str | None) -> str | None:
    if not state.ranked:
        return state.alive[0] if len(state.alive) == 1 else None
    best = next(classes(state))
    return previous if previous in best["members"] else best["leader"]


def _unranked(state: Contest) -> list[str]:
    return [n for n in state.alive if n not in state.ranked]


def _standing(state: Contest, name: str) -> dict[str, Any]:
    against: Comparison | None = None
    if state.leader is not None and name != state.leader:
        against = state.compare(name, state.leader)
    ranked = name in state.ranked
    return {
        "configuration": name,
        "mean_tok_s": state.mean(name) if ranked else None,
        "rounds": sorted(state.subjects[name].rounds),
        "verdict": against.verdict if against else "best" if ranked else "undecided",
        "ratio": against.ratio if against else None,
        "ci": [against.ci.low, against.ci.high] if against and against.ci else None,
        "rounds_needed": against.rounds_needed if against else None,
        "reason": against.reason if against else None,
    }


def _evidence(cells: Iterable[CellFiles]) -> list[dict[str, Any]]:
    rounds: dict[str, list[int]] = {}
    for cell in sorted(cells, key=lambda c: (c.configuration, c.round)):
        rounds.setdefault(cell.configuration, []).append(cell.round)
    return [{"configuration": name, "rounds": numbers} for name, numbers in rounds.items()]


def _known_out(phase: str, races: Sequence[Race]) -> set[str]:
    return {name for race in races if race["phase"] == phase for name in race["eliminated"]}


def _log(
    state: Contest, round_: int, why: str, base: str | None, previous: str | None, known_out: set[str]
) -> list[str]:
    lines = [
        f"{e['configuration']} is out: {e['code']} at {e['stage']}"
        for e in state.eliminated
        if e["configuration"] not in known_out
    ]
    if state.leader is not None:
        lines.append(f"{state.leader} leads with {state.mean(state.leader):.1f} tok/s")
    if state.by.fit.odd:
        odd = ", ".join(f"{name} in round {r}" for name, r in sorted(state.by.fit.odd))
        lines.append(f"set aside as odd: {odd}")
    if state.noise is not None:
        lines.append(
            f"launches of one configuration spread by {100 * state.noise.sd:.1f} % (sd, df {state.noise.df})"
        )
    lines.append(why)
    if base is not None:
        kept = "stays" if base == previous and base != state.leader else "is"
        lines.append(f"{base} {kept} the base of the next phase")
    return [f"{state.phase} round {round_}: {line}" for line in lines]

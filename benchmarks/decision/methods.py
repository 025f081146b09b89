"""Ways to run a campaign: Pivotbench's race and what peers do, each scored against the truth."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.decision.law import MARGIN, STAGE_SECONDS, World
from scipy.stats import ttest_ind

from campaigns import CHAT_RULES, run_phase
from factory import Cell, cell_files
from pivotbench.decision.cost import cost
from pivotbench.decision.decide import decide
from pivotbench.decision.statistics import geometric_mean
from pivotbench.evidence import CellFiles
from pivotbench.turns import round_order

RULES = replace(CHAT_RULES, rounds_min=2, rounds_max=5)
ROUNDS = RULES.rounds_max
Verdicts = Mapping[tuple[str, str], str]


@dataclass(frozen=True)
class Score:
    """One campaign by one method. ``loss``: how far the chosen one is behind the best, log scale.

    ``equal`` and ``gap``: of the pairs with the chosen one that are truly equal, or truly 3 % apart, how many
    were called so, and how many there are; a timed-out or odd launch is no excuse.
    """

    false: bool
    loss: float
    gpu_seconds: float
    undecided: float
    equal: tuple[int, int]
    gap: tuple[int, int]


def race(world: World) -> Score:
    """Run the real rules round by round, then the real decision."""
    return _by_rules(world, RULES)


def full(world: World, rounds: int = ROUNDS) -> Score:
    """So many rounds for all, judged once by the real rules."""
    return _by_rules(world, replace(RULES, rounds_min=rounds, rounds_max=rounds))


def never(score: Score) -> Score:
    """What the same campaign scores where every verdict is undecided."""
    return replace(score, false=False, undecided=1.0, equal=(0, score.equal[1]), gap=(0, score.gap[1]))


def single(world: World) -> Score:
    """One run, take the maximum: whoever is second is slower."""
    values, spent = _sweep(world, 1)
    chosen = max(values, key=lambda n: values[n][0])
    return _score(world, chosen, {(n, chosen): "slower" for n in values if n != chosen}, spent)


def sweep(world: World) -> Score:
    """Five rounds for all; slower where Welch's test at 5 % says so, otherwise the same."""
    values, spent = _sweep(world, ROUNDS)
    chosen = max(values, key=lambda n: geometric_mean(values[n]))
    verdicts = {}
    for name, speeds in values.items():
        if name != chosen:
            test = ttest_ind(speeds, values[chosen], equal_var=False)
            verdicts[name, chosen] = "slower" if test.pvalue < 0.05 else "equivalent"
    return _score(world, chosen, verdicts, spent)


METHODS: Mapping[str, Callable[[World], Score]] = {
    "pivotbench": race,
    "five rounds for all, same rules": full,
    "five rounds for all, Welch's t": sweep,
    "one run, take the maximum": single,
}


def _by_rules(world: World, rules: Any) -> Score:
    order = round_order(rules.study, "backends", 1, world.names)
    races, cells = run_phase(rules, "backends", order, world.round, store=_stored)
    decision = decide(rules, races, cells)
    verdicts = {(row["a"], row["b"]): row["verdict"] for row in decision["comparisons"]}
    # A false verdict on the way, though mended later, is a false verdict.
    seen = [verdicts]
    for judged in races[rules.rounds_min - 1 :]:
        leader = next(s["configuration"] for s in judged["standings"] if s["verdict"] == "best")
        seen.append({(s["configuration"], leader): s["verdict"] for s in judged["standings"]})
    score = _score(world, decision["winner"], verdicts, _gpu_seconds(cells))
    return replace(score, false=any(is_false(world, each) for each in seen))


def _sweep(world: World, rounds: int) -> tuple[dict[str, list[float]], float]:
    speeds: dict[str, list[float]] = {}
    cells: list[CellFiles] = []
    for round_ in range(1, rounds + 1):
        for cell in world.round("backends", round_order("sim", "backends", round_, world.names), round_):
            cells += _stored([cell])
            if cell.tok_s:
                speeds.setdefault(cell.configuration, []).append(cell.tok_s["chat", 1])
    return {n: v for n, v in speeds.items() if len(v) > 1 or rounds == 1}, _gpu_seconds(cells)


def _stored(cells: Iterable[Cell]) -> list[CellFiles]:
    return [cell_files(cell, RULES.study, STAGE_SECONDS) for cell in cells]


def _gpu_seconds(cells: Iterable[CellFiles]) -> float:
    return float(cost(cells, 1, ROUNDS)["gpu_seconds"])


def _score(world: World, chosen: str, verdicts: Verdicts, gpu_seconds: float) -> Score:
    open_ = [v for (_, b), v in verdicts.items() if b == chosen]
    equal, gap = [], []
    for name, truth in world.truth.items():
        distance = world.truth[chosen] - truth
        if name != chosen:
            verdict = verdicts.get((name, chosen), "undecided")
            if abs(distance) < 1e-12:
                equal.append(verdict == "equivalent")
            elif math.isclose(distance, math.log1p(0.03)):
                gap.append(verdict == "slower")
    return Score(
        false=is_false(world, verdicts),
        loss=world.best - world.truth[chosen],
        gpu_seconds=gpu_seconds,
        undecided=open_.count("undecided") / max(1, len(open_)),
        equal=(sum(equal), len(equal)),
        gap=(sum(gap), len(gap)),
    )


def is_false(world: World, verdicts: Verdicts) -> bool:
    """Whether any verdict contradicts the truth; undecided never does."""
    for (a, b), verdict in verdicts.items():
        if a in world.truth and b in world.truth:
            distance = world.truth[a] - world.truth[b]
            if (
                (verdict == "faster" and distance <= 0)
                or (verdict == "slower" and distance >= 0)
                or (verdict == "equivalent" and abs(distance) > MARGIN + 1e-12)
            ):
                return True
    return False

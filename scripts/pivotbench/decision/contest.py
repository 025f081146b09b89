"""A phase at a moment: who is alive, how noisy launches are, who leads, how any two compare."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pivotbench.agreement import Agreement, agree
from pivotbench.decision.comparison import (
    Comparison,
    Subject,
    Verdict,
    Yardstick,
    compare,
    judge,
)
from pivotbench.decision.conditions import Conditions, conditions
from pivotbench.decision.elimination import eliminated
from pivotbench.decision.environments import most_frequent, undeclared
from pivotbench.decision.fairness import Demand, Serving, confounders, demand_of, unfair
from pivotbench.decision.loads.goodput import goodput_values
from pivotbench.decision.metric import metric_values
from pivotbench.decision.out_of_turn import late_pairs
from pivotbench.decision.spending import Risk
from pivotbench.decision.statistics import (
    Noise,
    chance_above_margin,
    chances_to_settle,
    fit,
    geometric_mean,
    pooled_noise,
)
from pivotbench.decision_rules import DecisionRules
from pivotbench.engines import get_engine
from pivotbench.engines.spelling import Spelling
from pivotbench.evidence import CellFiles
from pivotbench.measurements import rows

# Of settling a pair within the rounds left. Equals are a finding; of a loser, the choice knows enough.
CHANCE_OF_EQUALS = 0.25
CHANCE_OF_LOSERS = 0.6
REGRET = 0.125  # risk of giving up one that is better than the best by more than the margin
PLACES = ("host", "system", "cpu_model")  # another one of them may be as good; it is named


@dataclass(frozen=True)
class Contest:
    """The state of one phase.

    ``alive``: configurations not eliminated, sorted by name. ``ranked``: those of them that have a metric
    value and ran in the phase's main environment, fastest mean first (ties by name), behind all others those
    of Subject.at_most; ``by`` holds their fitted rounds and what any two of them are judged by.
    ``comparisons``: over how many pairs the risk is divided. ``agreement``: what the answers of those that
    work show; who is out by them is among the ``eliminated``. ``demand``: what the metric is measured under;
    ``spelling``: the engine's names for what limits it. ``environment``: the one that most ran in.
    ``largest_loads``: for goodput, by configuration and workload, the mean over rounds.
    """

    phase: str
    subjects: Mapping[str, Subject]
    alive: tuple[str, ...]
    ranked: tuple[str, ...]
    eliminated: Sequence[dict[str, Any]]
    by: Yardstick
    comparisons: int
    synthetic: bool
    simulated: frozenset[str]
    agreement: Agreement
    demand: Demand
    spelling: Spelling
    environment: str | None
    largest_loads: Mapping[str, Mapping[str, float]]

    @property
    def leader(self) -> str | None:
        """The configuration with the highest mean; None where nothing is ranked."""
        return self.ranked[0] if self.ranked else None

    @property
    def noise(self) -> Noise | None:
        """What a relaunch changes, beside what its round does to all; None where nothing was relaunched."""
        return self.by.fit.noise

    @property
    def level_noise(self) -> Noise | None:
        """How launches of one configuration differ in all, their rounds' effects included."""
        return pooled_noise(self.by.fit.used.values())

    @property
    def eligible(self) -> tuple[str, ...]:
        """Who could be chosen: alive, in the environment of the ranked, with the text that has to be kept."""
        kept = [name for name in self.alive if name not in self.agreement.changed]
        return tuple(name for name in kept if self.subjects[name].environments == {self.environment})

    @cached_property
    def out_of_turn(self) -> list[tuple[str, str]]:
        """Who of the ranked had rounds measured after later ones of whom; see decision.out_of_turn."""
        return late_pairs({name: self.subjects[name].serving.begun for name in self.ranked})

    def mean(self, name: str) -> float:
        """Return a ranked configuration's mean at the average round, tok/s; odd launches do not count."""
        return self.by.fit.mean(name)

    def compare(self, a: str, b: str) -> Comparison:
        """Return how ``a`` stands to ``b``, with what differs though nobody asked for it.

        Whatever the figures, the verdict is not_comparable where fairness.unfair gives a reason, and
        undecided where ``unjudgeable`` does.
        """
        one, other = self.subjects[a], self.subjects[b]
        result = compare(one, other, self.by)
        bounded = self._bounded(a, b) if result.verdict == "equivalent" else None
        if result.verdict != "not_comparable":
            if reason := self._unfair(a, b):
                result = replace(result, verdict="not_comparable", rounds_needed=None, reason=reason)
            elif reason := self.unjudgeable(a, b) or bounded:
                result = replace(result, verdict="undecided", rounds_needed=None, reason=reason)
        return replace(result, confounders=confounders(one.serving, other.serving, self.spelling))

    def verdict(self, a: str, b: str) -> Verdict:
        """Return only the verdict that compare gives, at a small part of its cost."""
        one, other = self.subjects[a], self.subjects[b]
        verdict = judge(one, other, self.by).verdict
        if verdict == "not_comparable" or self._unfair(a, b):
            return "not_comparable"
        if self.unjudgeable(a, b) or (verdict == "equivalent" and self._bounded(a, b)):
            return "undecided"
        return verdict

    def equivalent(self, a: str, b: str) -> bool:
        """Return whether the verdict on two ranked ones is equivalent, for nearly nothing where it is not.

        An interval holds its estimate in its middle, so estimates farther apart than the margin leaves beside
        the narrowest need no interval.
        """
        if abs(self.by.fit.log_ratio(a, b)) > self.by.reach:
            return False
        one, other = self.subjects[a], self.subjects[b]
        return judge(one, other, self.by).verdict == "equivalent" and self.verdict(a, b) == "equivalent"

    def _unfair(self, a: str, b: str) -> str | None:
        return unfair(self.subjects[a].serving, self.subjects[b].serving, self.demand, self.spelling)

    def worth_rounds(self, a: str, b: str, left: int) -> bool:
        """Return whether a pair that is undecided is worth up to ``left`` more rounds of ``a``.

        It is where these would settle it with a fair chance, where ``a`` may well be better than ``b`` by
        more than the margin, so that leaving it would risk the choice, and where too little is known.
        """
        found, noise = self.by.fit.difference(a, b), self.noise
        if found is None or noise is None or found.rounds < 2 or {a, b} & self.by.fit.unsteady:
            return True
        if chance_above_margin(found, noise, self.by.margin) > REGRET:
            return True
        horizon, to_best = found.rounds + left, self.by.best in (a, b)
        same, apart = chances_to_settle(found, noise, self.by.risk, self.by.margin, horizon, to_best=to_best)
        return (same >= CHANCE_OF_EQUALS and not self._bounded(a, b)) or apart >= CHANCE_OF_LOSERS

    def unjudgeable(self, a: str, b: str) -> str | None:
        """Return why no number of rounds would make the pair's figures count, or None."""
        if self.phase == "speculative" and self.synthetic:
            return "neither random tokens nor text that nobody judged can judge speculation"
        if self.simulated & {a, b}:
            return "the server simulated acceptance"
        if a in self.by.fit.used and b in self.by.fit.used:
            ahead, behind = (a, b) if self.mean(a) >= self.mean(b) else (b, a)
            if self.subjects[behind].at_least or self.subjects[ahead].at_most:
                return self._bounded(a, b)
        return None

    def _bounded(self, a: str, b: str) -> str | None:
        """Return that one of the two is known by a bound only, or None: then equal is no finding."""
        said = [
            f"the limits {how} in some round of {name}"
            for name in (a, b)
            for how, bound in (
                ("are not crossed by a measured load", self.subjects[name].at_least),
                ("are missed at the least load", self.subjects[name].at_most),
                ("are crossed below a rate that is not sustained", self.subjects[name].between),
            )
            if bound
        ]
        return "; ".join(said) or None


def contest(
    rules: DecisionRules,
    phase: str,
    cells: Sequence[CellFiles],
    prior_sd: float | None = None,
    measurements: Sequence[Mapping[str, Any]] | None = None,
) -> Contest:
    """Return the state of ``phase`` from its cells; those of other phases are ignored.

    ``measurements``: the rows of the cells, where they are at hand.
    The risk of a false verdict is divided over the ranked configurations as spending.Risk says.
    """
    cells = [c for c in cells if c.phase == phase]
    broken = eliminated(cells)
    working = {c.configuration for c in cells} - {e["configuration"] for e in broken}
    agreement = agree(rules, phase, [c for c in cells if c.configuration in working])
    out = sorted([*broken, *agreement.eliminated], key=lambda e: str(e["configuration"]))
    gone = {e["configuration"] for e in out}
    alive = tuple(sorted({c.configuration for c in cells} - gone))
    own: dict[str, list[CellFiles]] = {name: [] for name in alive}
    working_cells = [c for c in cells if c.configuration in own]
    for cell in working_cells:
        own[cell.configuration].append(cell)
    found = rows(working_cells) if measurements is None else measurements
    table = [row for row in found if row["phase"] == phase and row["configuration"] in own]
    hardware, environments = conditions(table), undeclared(cells, rules.version_of, gpus=rules.gpus)
    if rules.goodput is not None:
        values = goodput_values(rules.goodput, rules.metric_weights, working_cells)
    else:
        values = metric_values(rules, table)
    subjects = {
        name: replace(
            _subject(
                name,
                own[name],
                values.get(name),
                hardware.get(name, Conditions()),
            ),
            environments=environments.get(name, frozenset()),
        )
        for name in alive
    }
    measured = [s for s in subjects.values() if s.rounds]
    main = _main_environment(measured or list(subjects.values()))
    fitted = fit({s.configuration: s.rounds for s in measured if s.environments == {main}})
    # To nine digits: the order must not hang on how a sum was rounded.
    # Who misses the limits in some round is known by its better rounds only, and stands behind the others.
    ranked = sorted(
        fitted.used,
        key=lambda name: (subjects[name].at_most, -round(math.log(fitted.mean(name)), 9), name),
    )
    risk = Risk.among(rules.confidence, len(ranked), rules.rounds_min, rules.rounds_max)
    return Contest(
        phase=phase,
        subjects=subjects,
        alive=alive,
        ranked=tuple(ranked),
        eliminated=out,
        by=Yardstick(fitted, risk, rules.margin, ranked[0] if ranked else None, prior_sd),
        comparisons=len(ranked) * (len(ranked) - 1) // 2,
        synthetic=any(v.synthetic for v in values.values()),
        simulated=frozenset(name for name, v in values.items() if v.simulated),
        agreement=agreement,
        demand=demand_of(table, rules.metric_weights, rules.metric_concurrency),
        spelling=get_engine(rules.engine).spelling,
        environment=main,
        largest_loads={name: _mean_loads(v.loads.values()) for name, v in values.items() if v.loads},
    )


def _mean_loads(rounds: Iterable[Mapping[str, float]]) -> dict[str, float]:
    rounds = list(rounds)
    return {w: geometric_mean(loads[w] for loads in rounds) for w in rounds[0]}


def _subject(name: str, cells: Sequence[CellFiles], values: Any, hardware: Conditions) -> Subject:
    measured = [c for c in cells if c.measured]
    last = max(measured, key=lambda c: c.round, default=None)
    rounds, unranked = (values.rounds, values.unranked) if values else ({}, {})
    bound = sum(reason == "client_bound" for reason in unranked.values())
    return Subject(
        configuration=name,
        rounds=rounds,
        unranked=unranked,
        at_least=bool(values and values.at_least),
        at_most=bool(values and values.at_most),
        between=bool(values and values.between),
        serving=Serving(
            requested=last.requested if last else {},
            effective=last.effective if last else {},
            conditions=hardware,
            client_bound=(bound, len(rounds) + len(unranked)),
            places={
                place: frozenset(str(c.environment[place]) for c in measured if c.environment.get(place))
                for place in PLACES
            },
            begun={c.round: at for c in measured if (at := c.load_began) is not None},
        ),
    )


def _main_environment(subjects: Sequence[Subject]) -> str | None:
    return most_frequent(Counter(e for s in subjects for e in s.environments))

"""The answers of one phase as they stand: the reference, who agrees with it, who is out, what stays open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pivotbench.agreement.departures import usual
from pivotbench.agreement.judgement import Held, eliminated, hold
from pivotbench.agreement.load import excesses
from pivotbench.agreement.reading import Witness, witnesses
from pivotbench.agreement.reference import reference_of, unable
from pivotbench.agreement.speculative import greedy_text, own_departures
from pivotbench.decision_rules import DecisionRules
from pivotbench.evidence import CellFiles

# Two tokens are about equally likely where each of their logprobs may be off by the study's bound.
NEAR_TIE_BOUNDS = 2
SPEED_ONLY = "the study asks for speed only: answers are recorded, not judged"


@dataclass(frozen=True)
class Agreement:
    """What a phase's answers show. ``table`` is what decision.json says of it, None where nobody answered.

    ``unjudged``: the reference fails every prompt, so nobody was put out. ``doubtful``: the prompts that the
    reference fails although others answer them well. ``changed``: speculative configurations that change the
    greedy text. ``unsteady``: whose answers do not repeat. ``replaced``: the study's reference does not work.
    """

    reference: str | None
    eliminated: Sequence[dict[str, Any]]
    table: dict[str, Any] | None
    unjudged: bool
    doubtful: Sequence[str]
    changed: frozenset[str]
    unsteady: Sequence[str]
    replaced: bool


def agree(rules: DecisionRules, phase: str, cells: Iterable[CellFiles]) -> Agreement:
    """Hold the answers of a phase's configurations that work against their reference."""
    cells = list(cells)
    healthy = witnesses(cells)
    name = reference_of(rules, phase, healthy)
    if name is None:
        return Agreement(None, [], None, False, [], frozenset(), [], False)
    reference = healthy[name]
    near_tie_nats = NEAR_TIE_BOUNDS * rules.agreement_bound
    rivals = [witness for witness in healthy.values() if witness is not reference]
    held = [hold(witness, reference, near_tie_nats) for witness in (reference, *rivals)]
    others = held[1:]
    unjudged = not rules.speed_only and unable(reference)
    judged = not (unjudged or rules.speed_only)
    out = eliminated(phase, others, rules.agreement_bound, excesses(cells, name)) if judged else []
    texts = {}
    if phase == "speculative" and not rules.speed_only:
        own = own_departures(reference, near_tie_nats)
        texts = {one.witness.configuration: greedy_text(one, own) for one in others}
    return Agreement(
        reference=name,
        eliminated=out,
        table={
            "phase": phase,
            "reference": name,
            "judged": judged,
            "statement": SPEED_ONLY if rules.speed_only else _statement(reference, unjudged),
            "prompts": len(reference.answers),
            "set_aside": sorted(reference.problems),
            "bound_nats": rules.agreement_bound,
            "near_tie_nats": near_tie_nats,
            "configurations": [_row(one, texts.get(one.witness.configuration)) for one in held],
        },
        unjudged=unjudged,
        doubtful=sorted(
            ask
            for ask in (() if rules.speed_only else reference.problems)
            if any(ask in one.witness.answers and ask not in one.witness.problems for one in others)
        ),
        changed=frozenset(n for n, text in texts.items() if text["verdict"] == "changed"),
        unsteady=[one.witness.configuration for one in held if one.witness.steady < len(one.witness.answers)],
        replaced=phase == "backends" and rules.reference not in (None, name),
    )


def _statement(reference: Witness, unjudged: bool) -> str:
    name, aside, asked = reference.configuration, len(reference.problems), len(reference.answers)
    if not asked:
        return "no answers were recorded that could be compared"
    if unjudged:
        return f"{name} fails every prompt, so nothing can be judged by answers"
    kept = f"{asked} prompt{'s' if asked != 1 else ''}"
    if aside:
        kept = f"{asked - aside} of {kept}; it fails the other{'s' if aside > 1 else ''} itself"
    return f"Answers are held against {name} on {kept}"


def _row(held: Held, text: dict[str, Any] | None) -> dict[str, Any]:
    witness, found, answered = held.witness, held.distance, held.answer_distance
    kinds = Counter(usual(departures) for departures in held.departures.values())
    shared = [d for departures in held.departures.values() for d in departures]
    shortest = min(shared, key=lambda d: (d.unit != "tokens", d.shared), default=None)
    same, repeated = witness.repeats
    return {
        "configuration": witness.configuration,
        "prompts": len(held.departures),
        "equal": kinds["equal"],
        "departures": {kind: kinds[kind] for kind in ("near_tie", "clear", "unknown")},
        "shortest_common_prefix": shortest.shared if shortest else None,
        "prefix_unit": shortest.unit if shortest else None,
        "distance_nats": found.mean_nats if found else None,
        "distance_tokens": found.tokens if found else 0,
        "answer_distance_nats": answered.mean_nats if answered else None,
        "answer_distance_tokens": answered.tokens if answered else 0,
        "failed": list(held.failed),
        "excused": list(held.excused),
        "repeatability": same / repeated if repeated else None,
        "steady": witness.steady,
        "greedy_text": text,
    }

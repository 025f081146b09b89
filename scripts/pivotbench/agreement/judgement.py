"""Which configurations are out because of what they answer, judged against the reference.

A weak model is not a broken backend. So a prompt counts only where the reference itself answers it well; the
others are set aside. A configuration fails a prompt when more than half of its answers to it, over all rounds
and repeats, have a problem. It is out for

garbage, wrong_answer     it fails a prompt that the reference answers well. One such prompt alone is excused
                          where its answer left the reference's at a near tie: that is a text the model itself
                          might have written. Garbage also where its answers to different prompts are suspect
                          together (all begin alike) and the reference's are not.
disagrees_with_reference  its log probabilities of the fixed continuations, or of what both answered, lie
                          farther from the reference's than the study's bound, in the mean over tokens.
garbage_under_load        under some load it has more suspect texts; see load.

That a text differs is never a reason by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pivotbench.agreement.departures import Departure, departure, usual
from pivotbench.agreement.distance import Distance, answer_distance, distance
from pivotbench.agreement.load import Excess
from pivotbench.agreement.reading import Witness
from pivotbench.diagnosis.reasons import remedy_for
from pivotbench.results import Stage

SHOWN_CHARACTERS = 200


@dataclass(frozen=True)
class Held:
    """One configuration held against the reference: by prompt its departures, in all its distance."""

    witness: Witness
    reference: Witness
    departures: Mapping[str, Sequence[Departure]]
    distance: Distance | None
    answer_distance: Distance | None
    failed: tuple[str, ...]
    excused: tuple[str, ...]


def hold(witness: Witness, reference: Witness, near_tie_nats: float) -> Held:
    """Hold one configuration against the reference, whose first answer to each prompt stands for it."""
    departures = {
        ask: [departure(reference.answers[ask][0], said, near_tie_nats) for said in answers]
        for ask, answers in witness.answers.items()
        if reference.answers.get(ask)
    }
    failed = tuple(ask for ask in departures if ask in witness.problems and ask not in reference.problems)
    excused = failed if len(failed) == 1 and usual(departures[failed[0]]) == "near_tie" else ()
    return Held(
        witness=witness,
        reference=reference,
        departures=departures,
        distance=distance(reference.levels, witness.levels),
        answer_distance=answer_distance(reference.answers, witness.answers),
        failed=() if excused else failed,
        excused=excused,
    )


def eliminated(
    phase: str, held: Sequence[Held], bound_nats: float, excesses: Sequence[Excess]
) -> list[dict[str, Any]]:
    """Return who is out, each for the first of the reasons that holds."""
    under_load = {excess.configuration: excess for excess in excesses}
    out = []
    for one in held:
        name = one.witness.configuration
        if one.failed:
            out.append(_by_answers(phase, one))
        elif together := one.witness.across - one.reference.across:
            out.append(_by_all_answers(phase, one, together))
        elif _beyond(one.distance, bound_nats) or _beyond(one.answer_distance, bound_nats):
            out.append(_by_distance(phase, one, bound_nats))
        elif name in under_load:
            out.append(_by_load(phase, under_load[name], one.reference.configuration))
    return out


def _by_answers(phase: str, held: Held) -> dict[str, Any]:
    problems = held.witness.problems
    ask = min(held.failed, key=lambda a: problems[a] != "garbage")
    own, reference = held.witness.failing(ask), held.reference.answers[ask][0]
    more = f", as are {len(held.failed) - 1} others" if len(held.failed) > 1 else ""
    what = f"suspect ({own.signs})" if own.problem == "garbage" else f"wrong (expected: {own.signs})"
    name = held.reference.configuration
    return _row(
        (phase, held.witness.configuration, "smoke", problems[ask]),
        f"the answer to {ask!r} is {what}{more}, where {name} answers well",
        [f"{held.witness.configuration}: {_shown(own.text)}", f"{name}: {_shown(reference.text)}"],
    )


def _by_all_answers(phase: str, held: Held, detectors: frozenset[str]) -> dict[str, Any]:
    name = held.reference.configuration
    return _row(
        (phase, held.witness.configuration, "smoke", "garbage"),
        f"its answers to different prompts are suspect together ({', '.join(sorted(detectors))}), those of "
        f"{name} are not",
        [f"{ask}: {_shown(answers[0].text)}" for ask, answers in held.witness.answers.items()],
    )


def _beyond(found: Distance | None, bound_nats: float) -> bool:
    return found is not None and found.mean_nats > bound_nats


def _by_distance(phase: str, held: Held, bound_nats: float) -> dict[str, Any]:
    found, what = held.distance, "fixed continuations"
    if found is None or not _beyond(found, bound_nats):
        found, what = held.answer_distance, "what both answered"
    assert found is not None
    lines = []
    for witness in (held.witness, held.reference):
        told = (witness.followed if found is held.distance else witness.answers)[found.farthest][0]
        values = " ".join(f"{value:.2f}" for value in told.logprobs or ())
        lines.append(f"{witness.configuration}: {_shown(told.text)!r}: {values}")
    return _row(
        (phase, held.witness.configuration, "smoke", "disagrees_with_reference"),
        f"log probabilities of {what} lie {found.mean_nats:.2f} nats from those of "
        f"{held.reference.configuration} in the mean over {found.tokens} tokens; the bound is {bound_nats:g}",
        lines,
    )


def _by_load(phase: str, excess: Excess, reference: str) -> dict[str, Any]:
    return _row(
        (phase, excess.configuration, "throughput", "garbage_under_load"),
        excess.message.replace("the reference's", f"{reference}'s"),
        [_shown(excess.own.first)] if excess.own.first else [],
    )


def _row(who: tuple[str, str, Stage, str], reason: str, evidence: list[str]) -> dict[str, Any]:
    phase, configuration, stage, code = who
    return {
        "phase": phase,
        "configuration": configuration,
        "stage": stage,
        "code": code,
        "reason": reason,
        "evidence": evidence,
        "links": [],
        "remedy": remedy_for(code),
    }


def _shown(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]} …"

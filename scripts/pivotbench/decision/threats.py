"""Why a decision may not hold: each threat has one code and one wording."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from pivotbench.decision.contest import Contest
from pivotbench.decision.fairness import Serving
from pivotbench.decision_rules import DecisionRules
from pivotbench.figures import names
from pivotbench.settings import spelled

Row = Mapping[str, Any]


class Threat(Enum):
    """The known threats; the value is the wording."""

    NOISE_UNKNOWN = (
        "nobody knows how much a relaunch changes: no configuration of {phase} has two rounds; "
        "the rounds said to be needed are a guess"
    )
    NOISY = "launches spread by {sd:.1f} % in {phase}, not small against a margin of {margin:g} %"
    FEW_ROUNDS = "the noise of {phase} rests on {df} degrees of freedom: one odd launch weighs much"
    CLIENT_BOUND = "the load generator may have limited {names}; rounds so marked are not ranked"
    GOODPUT_AT_LEAST = (
        "no measured load shows where {names} would miss the limits: their goodput is at least what is "
        "shown, and nobody is faster or equal by it"
    )
    GOODPUT_BETWEEN = (
        "for {names} the limits are crossed below a rate that the server does not sustain: their order "
        "holds, the distance does not, and nobody is equal by it"
    )
    GOODPUT_MISSED = "the limits are missed at the least load in some rounds of {names}, e.g. {example}"
    STALLED = (
        "{names} stood still while measured: for long no token came, or a window of a run gave less than a "
        "third of its fastest; kernels compiled at first use do that, and another round finds them compiled"
    )
    RESTARTED = (
        "{names} stood still while measured, and the measured time began anew after it ({count} in all): "
        "where kernels were compiled at first use, what that took is in no figure"
    )
    STOPS_AGAIN = (
        "{names} stood still at the same load in launch after launch, as kernels compiled once and kept "
        "would not do: the figures begin after it and hold too little of it"
    )
    THROTTLED = "the hardware throttled during runs of {names}"
    SYNTHETIC = "the metric uses random tokens, which cannot judge speculation"
    SPEED_ONLY = "the study asks for speed only: nobody judged the answers, and what is fastest may be wrong"
    SIMULATED = "acceptance of drafts was simulated for {names}"
    ENVIRONMENTS = "{names} ran in a different environment and are not ranked with the others"
    UNFAIR = "{pair} cannot be compared: {reason}"
    CONFOUNDED = "settings or conditions nobody asked for differ between configurations, e.g. {example}"
    OUT_OF_TURN = (
        "{late} had rounds measured after later rounds of {early}: what changed on the machine meanwhile is "
        "in the ratios between them, and no interval covers it"
    )
    UNANSWERED = (
        "with {names} some of the load failed whenever it was sent, e.g. {example}; rounds so marked are not "
        "ranked: give the server a context that holds it, or shorten it"
    )
    FORCED_LENGTH = (
        "acceptance on {names} was counted on answers driven to a set length: beyond its natural end a text "
        "tends to repeat itself, which drafts too well; `stop: natural` counts real answers"
    )
    FAILED_REQUESTS = "{count} requests failed or fell short in measured runs"
    ANSWERS_UNJUDGED = (
        "the reference {reference} fails every smoke prompt of {phase}: whether answers are right is unknown"
    )
    REFERENCE_DOUBTFUL = (
        "the reference {reference} fails {count} smoke prompts of {phase} that others answer well, "
        "e.g. {example}"
    )
    REFERENCE_REPLACED = "the study's reference does not work, so answers are held against {reference}"
    TEXT_CHANGED = "greedy text is not the baseline's, beyond rounding, with {names}: none of them can win"
    UNSTEADY = "greedy answers do not repeat, asked again or after a relaunch, with {names}"
    MODEL_CODE = (
        "the study trusts code that comes with the model: {names} ran it with your rights; read it, and pin "
        "the model's revision"
    )
    COPIED = (
        "{cells} are one measurement, of one launch: a copy makes launches look alike; run again without "
        "frozen=true, which makes copies anew"
    )
    ONE_HOST = "everything was measured on one host: another one of the same kind may differ"


SMALL_AGAINST_MARGIN = 1 / 3
FEW_DF = 4


def threats(
    rules: DecisionRules,
    states: Sequence[Contest],
    rows: Sequence[Row],
    comparisons: Sequence[Mapping[str, Any]],
    hosts: frozenset[str],
) -> list[dict[str, str]]:
    """Return the threats that the evidence shows, each with its code and message."""
    found: list[tuple[Threat, dict[str, Any]]] = []
    for state in states:
        found += [*_of_phase(rules, state), *_of_answers(state)]
    for threat, flag in (
        (Threat.CLIENT_BOUND, "client_bound"),
        (Threat.STALLED, "stalled"),
        (Threat.THROTTLED, "throttled"),
        (Threat.SIMULATED, "simulated"),
    ):
        if flagged := sorted({row["configuration"] for row in rows if row[flag]}):
            found.append((threat, {"names": ", ".join(flagged)}))
    if failing := {row["configuration"]: row["unanswered"] for row in rows if row["unanswered"]}:
        example = failing[min(failing)]
        found.append((Threat.UNANSWERED, {"names": ", ".join(sorted(failing)), "example": example}))
    if driven := sorted({row["workload"] for row in rows if _driven(row)}):
        found.append((Threat.FORCED_LENGTH, {"names": ", ".join(driven)}))
    if rules.speed_only:
        found.append((Threat.SPEED_ONLY, {}))
    elif any(state.synthetic for state in states):
        found.append((Threat.SYNTHETIC, {}))
    found += [
        (Threat.UNFAIR, {"pair": f"{c['a']} and {c['b']}", "reason": c["reason"]})
        for c in comparisons
        if c["verdict"] == "not_comparable" and c["ratio"] is not None  # else ENVIRONMENTS names them
    ]
    if differing := next((c["confounders"][0] for c in comparisons if c["confounders"]), None):
        found.append((Threat.CONFOUNDED, {"example": differing}))
    run = ("launch_id", "workload", "concurrency", "rate_per_second")
    runs = {tuple(row[key] for key in run): row for row in rows}
    if restarted := [row for row in runs.values() if row["restarts"]]:
        anew = ", ".join(sorted({row["configuration"] for row in restarted}))
        times = sum(row["restarts"] for row in restarted)
        found.append((Threat.RESTARTED, {"names": anew, "count": times}))
        loads = Counter(tuple(row[key] for key in ("configuration", *run[1:])) for row in restarted)
        if again := sorted({load[0] for load, launches in loads.items() if launches > 1}):
            found.append((Threat.STOPS_AGAIN, {"names": ", ".join(again)}))
    if count := sum(row["requests_failed"] for row in runs.values()):
        found.append((Threat.FAILED_REQUESTS, {"count": count}))
    if trusting := sorted({n for s in states for n, each in s.subjects.items() if _trusts(each.serving)}):
        found.append((Threat.MODEL_CODE, {"names": ", ".join(trusting)}))
    for cells in _of_one_launch(rows):
        found.append((Threat.COPIED, {"cells": ", ".join(cells)}))
    if len(hosts) == 1:
        found.append((Threat.ONE_HOST, {}))
    return [{"code": threat.name.lower(), "message": threat.value.format(**facts)} for threat, facts in found]


def _of_one_launch(rows: Sequence[Row]) -> list[list[str]]:
    """The cells that say they measured the same server, group by group; a server belongs to one cell."""
    measured: dict[str, set[tuple[str, int]]] = {}
    for row in rows:
        if row["launch_id"] is not None:
            measured.setdefault(row["launch_id"], set()).add((row["configuration"], row["round"]))
    return [
        [f"{name} r{number}" for name, number in sorted(cells)]
        for cells in measured.values()
        if len(cells) > 1
    ]


def _trusts(serving: Serving) -> bool:
    """Whether a server was told to run the model's own code."""
    return any(value and spelled(name) == "trust_remote_code" for name, value in serving.requested.items())


def _driven(row: Row) -> bool:
    """Whether drafts were counted in text that no model may have ended."""
    return row["kind"] == "text" and row["stop"] == "length" and bool(row["draft_accepted"])


def _of_answers(state: Contest) -> list[tuple[Threat, dict[str, Any]]]:
    shown = state.agreement
    facts: dict[str, Any] = {"reference": shown.reference, "phase": f"the {state.phase} phase"}
    found: list[tuple[Threat, dict[str, Any]]] = []
    if shown.unjudged:
        found.append((Threat.ANSWERS_UNJUDGED, facts))
    if shown.doubtful:
        doubtful = {"count": len(shown.doubtful), "example": repr(shown.doubtful[0])}
        found.append((Threat.REFERENCE_DOUBTFUL, facts | doubtful))
    if shown.replaced:
        found.append((Threat.REFERENCE_REPLACED, facts))
    if shown.changed:
        found.append((Threat.TEXT_CHANGED, {"names": ", ".join(sorted(shown.changed))}))
    if shown.unsteady:
        found.append((Threat.UNSTEADY, {"names": ", ".join(shown.unsteady)}))
    return found


def _of_phase(rules: DecisionRules, state: Contest) -> list[tuple[Threat, dict[str, Any]]]:
    found: list[tuple[Threat, dict[str, Any]]] = []
    apart = [n for n in state.alive if state.subjects[n].rounds and n not in state.ranked]
    if apart:
        found.append((Threat.ENVIRONMENTS, {"names": ", ".join(apart)}))
    if high := [n for n in state.alive if state.subjects[n].at_least]:
        found.append((Threat.GOODPUT_AT_LEAST, {"names": ", ".join(high)}))
    if between := [n for n in state.alive if state.subjects[n].between]:
        found.append((Threat.GOODPUT_BETWEEN, {"names": ", ".join(between)}))
    if low := [n for n in state.alive if state.subjects[n].at_most]:
        example = next(iter(state.subjects[low[0]].unranked.values()))
        found.append((Threat.GOODPUT_MISSED, {"names": ", ".join(low), "example": example}))
    if len(state.ranked) < 2:
        return found
    if pairs := state.out_of_turn:
        late, early = (names(sorted(set(each))) for each in zip(*pairs, strict=True))
        found.append((Threat.OUT_OF_TURN, {"late": late, "early": early}))
    phase = f"the {state.phase} phase"
    if state.noise is None:
        return [*found, (Threat.NOISE_UNKNOWN, {"phase": phase})]
    if state.noise.sd > rules.margin * SMALL_AGAINST_MARGIN:
        found.append(
            (Threat.NOISY, {"sd": 100 * state.noise.sd, "phase": phase, "margin": 100 * rules.margin})
        )
    if state.noise.df < FEW_DF:
        found.append((Threat.FEW_ROUNDS, {"phase": phase, "df": state.noise.df}))
    return found

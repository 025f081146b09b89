"""Smoke: are the answers such that speed is worth measuring?

The stage fails by itself only on what no working model writes ("bad" findings, logprobs that are not numbers)
and on requests that got no whole answer. What a weak model may write too, a loop or a wrong sum, is recorded
here and judged in the decision against what the reference configuration answers; see agreement.judgement.
Where a study asks for speed only, whole answers are all that is wanted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from pivotbench.client import Answer, generate, spoken
from pivotbench.detectors import first_token_collapse, inspect
from pivotbench.engines import get_engine
from pivotbench.engines.base import Alternative, Engine
from pivotbench.engines.forced import Forced
from pivotbench.expectations import PATTERN_SECONDS, expected_of, meets
from pivotbench.lease.ensure import Server
from pivotbench.lease.state import Record
from pivotbench.results import Reason
from pivotbench.stages.context import Context, failed_launch
from pivotbench.stages.ending import died_or

# How far below the chosen token its alternatives are kept; the first beyond bounds all that are not.
KEPT_NATS = 3.0


def smoke(context: Context) -> None:
    """Ask every prompt ``repeats`` times, greedily; have the server follow the study's continuations."""
    earlier = context.read("launch")
    if earlier["status"] != "ok":
        context.skip_after("launch", earlier)
        return
    server = context.ensure()
    if isinstance(server, Record):
        reason, block = failed_launch(server)
        context.write("failed", reason=reason, server=block, prompts=[], continuations=[])
        return
    try:
        engine = get_engine(context.request["engine"])
        prompts = context.work["prompts"]
        dialects, unspoken = spoken(server.url, server.served_name, engine.dialects)
        if unspoken:
            context.say(unspoken)
        said = generate(
            server.url,
            dialects[0],
            server.served_name,
            [p["ask"] for p in prompts],
            context.work["max_tokens"],
            repeats=context.work["repeats"],
            alive=server.alive,
        )
        judged = [_judge(p, answers) for p, answers in zip(prompts, said.answers, strict=False)]
        for line in _unjudged(judged):
            context.say(line)
        broken = said.failure or _broken(said.answers)
        followed = [] if broken else _follow(engine, server, context.work.get("continuations", ()))
        if broken is None and not server.alive():
            broken = Reason.of("server_died", "the server's process ended while it followed a continuation")
        speed_only = context.work.get("speed_only", False)
        verdict = died_or(server, broken) if broken else None if speed_only else _absolute(judged, followed)
        context.write(
            "failed" if verdict else "ok",
            reason=verdict,
            server=context.server_block(server),
            prompts=judged,
            across=[_across(said.answers)],
            continuations=followed,
            repeatability=_repeatability(judged),
            logprobs_refused=said.logprobs_refused,
            dialect=dialects[0],
            unspoken=unspoken,
            speed_only=speed_only,
        )
    finally:
        server.release()


def _broken(answers: Sequence[Sequence[Answer]]) -> Reason | None:
    for answer in (answer for repeats in answers for answer in repeats):
        if answer.status != "ok":
            return Reason.of(
                "request_failed",
                f"the request {answer.ask!r} got no whole answer ({answer.status})",
                (answer.error,) if answer.error else (),
            )
    return None


def _judge(prompt: dict[str, Any], answers: Sequence[Answer]) -> dict[str, Any]:
    expected = expected_of(prompt)
    judged: list[dict[str, Any]] = []
    for answer in answers:
        # What takes too long on one answer does so on its repeats.
        hangs = bool(judged) and expected is not None and judged[-1]["met"] is None
        judged.append(_judge_answer(answer, None if hangs else expected))
    first = judged[0]
    return {
        "ask": prompt["ask"],
        **{key: first[key] for key in ("text", "token_ids", "finish_reason", "output_tokens", "detectors")},
        "expectation": {"kind": expected[0], "value": expected[1], "met": first["met"]} if expected else None,
        "answers": judged,
    }


def _unjudged(judged: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each prompt whose pattern took too long: it is no expectation of any configuration."""
    for prompt in judged:
        expectation = prompt["expectation"]
        if expectation and expectation["met"] is None:
            yield (
                f"the answer to {prompt['ask']!r} is not judged: {expectation['value']!r} took more than "
                f"{PATTERN_SECONDS:g} s on it; write smoke.prompts.matches without repeats of repeats"
            )


def _judge_answer(answer: Answer, expected: tuple[str, str] | None) -> dict[str, Any]:
    findings = inspect(answer.text, answer.token_ids, answer.logprobs)
    return {
        "text": answer.text,
        "token_ids": answer.token_ids,
        "logprobs": [_number(value) for value in answer.logprobs] if answer.logprobs is not None else None,
        "alternatives": [_near(place) for place in answer.alternatives] if answer.alternatives else None,
        "finish_reason": answer.finish_reason,
        "output_tokens": answer.output_tokens,
        "detectors": [vars(f) for f in findings],
        "met": meets(answer.text, expected),
    }


def _across(answers: Sequence[Sequence[Answer]]) -> dict[str, Any]:
    """Return what shows only over the answers to different prompts, from the first answer to each."""
    firsts = [repeats[0] for repeats in answers if repeats]
    return vars(first_token_collapse([a.text for a in firsts], [a.token_ids for a in firsts]))


def _number(value: float | None) -> float | None:
    """Return a logprob as JSON can carry it: NaN and the infinities are null."""
    return round(value, 5) if value is not None and math.isfinite(value) else None


def _near(place: Sequence[Alternative]) -> list[list[Any]]:
    """Return the likeliest tokens within KEPT_NATS of the first, and the next one, as [id, text, logprob]."""
    kept: list[list[Any]] = []
    for token, text, value in place:
        logprob = _number(value)
        kept.append([token, text, logprob])
        top = kept[0][2]
        if top is None or logprob is None or top - logprob > KEPT_NATS:
            break
    return kept


def _follow(engine: Engine, server: Server, continuations: Sequence[dict[str, str]]) -> list[dict[str, Any]]:
    """Have the server follow each continuation; one that refuses or hangs at the first is asked no more."""
    followed: list[dict[str, Any]] = []
    forced = Forced(())
    for entry in continuations:
        if forced.logprobs is not None:
            forced = engine.teacher_logprobs(server.url, entry["prompt"], entry["continuation"])
        told = forced.logprobs
        followed.append(
            {
                **entry,
                "token_logprobs": None if told is None else [_number(value) for value in told],
                "at_most": list(forced.at_most),
                "why": forced.why,
            }
        )
    return followed


def _repeatability(judged: Sequence[dict[str, Any]]) -> float | None:
    """Return the share of prompts whose answers are all the same text; None where each was asked once."""
    repeated = [p["answers"] for p in judged if len(p["answers"]) > 1]
    same = sum(len({answer["text"] for answer in answers}) == 1 for answers in repeated)
    return same / len(repeated) if repeated else None


def _absolute(judged: Sequence[dict[str, Any]], followed: Sequence[dict[str, Any]]) -> Reason | None:
    for prompt in judged:
        for answer in prompt["answers"]:
            bad = [d["name"] for d in answer["detectors"] if d["verdict"] == "bad"]
            if bad:
                return Reason.of(
                    "garbage",
                    f"the answer to {prompt['ask']!r} is garbage ({', '.join(bad)})",
                    (answer["text"][:200],),
                )
    for entry in followed:
        if entry["token_logprobs"] and None in entry["token_logprobs"]:
            return Reason.of(
                "garbage",
                f"the log probabilities of the continuation {entry['id']!r} are not all numbers",
                (f"{entry['prompt']}|{entry['continuation']}: {entry['token_logprobs']}",),
            )
    return None

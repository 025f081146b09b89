"""Smoke: are the answers right enough that speed is worth measuring?"""

from __future__ import annotations

from typing import Any

from pivotbench.client import Answer, generate
from pivotbench.detectors import expectation_met, inspect
from pivotbench.engines import get_engine
from pivotbench.lease.state import Record
from pivotbench.results import Reason
from pivotbench.stages.context import Context, failed_launch
from pivotbench.stages.ending import died_or

EXPECTATIONS = ("contains", "matches", "equals")


def smoke(context: Context) -> None:
    """Ask every prompt once, greedily, and judge each answer."""
    earlier = context.read("launch")
    if earlier["status"] != "ok":
        context.skip_after("launch", earlier)
        return
    server = context.ensure()
    if isinstance(server, Record):
        reason, block = failed_launch(server)
        context.write("failed", reason=reason, server=block, prompts=[])
        return
    try:
        engine = get_engine(context.request["engine"])
        asked = context.work["prompts"]
        answers, failure = generate(
            server.url,
            engine.dialect,
            server.served_name,
            [p["ask"] for p in asked],
            context.work["max_tokens"],
            alive=server.alive,
        )
        judged = [_judge(p, answer) for p, answer in zip(asked, answers, strict=False)]
        broken = failure or _broken(answers)
        verdict = died_or(server, broken) if broken else _verdict(judged)
        context.write(
            "failed" if verdict else "ok",
            reason=verdict,
            server=context.server_block(server),
            prompts=judged,
        )
    finally:
        server.release()


def _broken(answers: list[Answer]) -> Reason | None:
    for answer in answers:
        if answer.status != "ok":
            return Reason.of(
                "request_failed",
                f"the request {answer.ask!r} got no whole answer ({answer.status})",
                (answer.error,) if answer.error else (),
            )
    return None


def _judge(prompt: dict[str, Any], answer: Answer) -> dict[str, Any]:
    findings = inspect(answer.text, answer.token_ids)
    expectation = None
    for kind in EXPECTATIONS:
        if kind in prompt:
            met = expectation_met(answer.text, **{kind: prompt[kind]})
            expectation = {"kind": kind, "value": prompt[kind], "met": met}
    return {
        "ask": prompt["ask"],
        "text": answer.text,
        "token_ids": answer.token_ids,
        "finish_reason": answer.finish_reason,
        "output_tokens": answer.output_tokens,
        "detectors": [vars(f) for f in findings],
        "expectation": expectation,
    }


def _verdict(judged: list[dict[str, Any]]) -> Reason | None:
    for answer in judged:
        bad = [d["name"] for d in answer["detectors"] if d["verdict"] == "bad"]
        if bad:
            return Reason.of(
                "garbage",
                f"the answer to {answer['ask']!r} is garbage ({', '.join(bad)})",
                (answer["text"][:200],),
            )
    for answer in judged:
        wanted = answer["expectation"]
        if wanted and not wanted["met"]:
            return Reason.of(
                "wrong_answer",
                f"the answer to {answer['ask']!r} misses what the study expects "
                f"({wanted['kind']} {wanted['value']!r})",
                (answer["text"][:200],),
            )
    return None

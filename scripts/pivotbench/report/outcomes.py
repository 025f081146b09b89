"""The outcome matrix: every configuration through its four stages, with what was seen where one failed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pivotbench.charts.field import OPEN, Field, fields, verdict_words
from pivotbench.diagnosis.reasons import remedy_of
from pivotbench.evidence import CellFiles
from pivotbench.figures import count, names, seconds, tok_s
from pivotbench.results import STAGES, Reason, Stage

MOST_LINES = 30
MOST_CHARACTERS = 500

State = Literal["ok", "failed", "mixed", "none"]
Tone = Literal["good", "open", "bad", "plain"]


@dataclass(frozen=True)
class StageOutcome:
    """How one stage went over all rounds of a configuration."""

    state: State
    text: str


@dataclass(frozen=True)
class Failure:
    """One failure with what was seen and what to do; links are addresses of the web only."""

    title: str
    message: str
    remedy: str | None
    evidence: tuple[str, ...]
    links: tuple[str, ...]


@dataclass(frozen=True)
class Answer:
    """What a configuration answered to one smoke prompt."""

    ask: str
    text: str


@dataclass(frozen=True)
class Outcome:
    """One row of the outcome matrix."""

    configuration: str
    stages: Mapping[Stage, StageOutcome]
    tone: Tone
    verdict: str
    failures: tuple[Failure, ...]
    answers: tuple[Answer, ...]
    expected: tuple[str, ...] = ()


TALLIED = {"backends": "backend", "speculative": "speculative configuration"}

# What the preflight expected, in words, by the outcome of a finding.
EXPECTATIONS = {
    "refused": "would be refused",
    "fails": "would fail to launch",
    "garbage": "could answer wrongly",
    "changed": "would take another setting",
    "doubtful": "hardly does what was meant",
}


def outcomes(decision: Mapping[str, Any], cells: Iterable[CellFiles]) -> dict[str, list[Outcome]]:
    """Return the outcome matrix by phase: ranked configurations first, the eliminated last."""
    found = fields(decision)
    by_name: dict[tuple[str, str], list[CellFiles]] = {}
    for cell in cells:
        by_name.setdefault((cell.phase, cell.configuration), []).append(cell)
    eliminated = {(row["phase"], row["configuration"]): row for row in decision["eliminated"]}
    places = {(r["phase"], r["configuration"]): place for place, r in enumerate(decision["ranking"])}
    matrix: dict[str, list[Outcome]] = {}
    for key in sorted(by_name, key=lambda k: (k in eliminated, places.get(k, len(places)), k[1])):
        phase, name = key
        row = _outcome(name, by_name[key], found.get(phase), eliminated.get(key))
        matrix.setdefault(phase, []).append(row)
    return {phase: matrix[phase] for phase in ("backends", "speculative") if phase in matrix}


def tally(matrix: Mapping[str, Sequence[Outcome]]) -> list[str]:
    """Return a sentence for each phase in which anybody is out: how many, and at which stage."""
    lines = []
    for phase, rows in matrix.items():
        out = [row for row in rows if row.tone == "bad"]
        at = [next((s for s in STAGES if row.stages[s].state == "failed"), "throughput") for row in out]
        stages = [f"{at.count(stage)} at {stage}" for stage in STAGES if stage in at]
        if out:
            verb = "is" if len(out) == 1 else "are"
            lines.append(f"Of {count(len(rows), TALLIED[phase])}, {len(out)} {verb} out: {names(stages, 4)}.")
    return lines


def _outcome(
    name: str, cells: Sequence[CellFiles], field: Field | None, eliminated: Mapping[str, Any] | None
) -> Outcome:
    stages = {stage: _stage(stage, [cell.stage(stage) for cell in cells]) for stage in STAGES}
    ranked = next((row for row in field.ranking if row["configuration"] == name), None) if field else None
    if ranked is not None and stages["throughput"].state == "ok":
        stages["throughput"] = StageOutcome("ok", tok_s(ranked["mean_tok_s"]))
    tone: Tone = "plain"
    if eliminated is not None:
        tone, verdict = "bad", f"eliminated: {eliminated['code'].replace('_', ' ')}"
    elif field is not None and ranked is not None:
        verdict = verdict_words(name, field) or "the only one ranked"
        row = field.others.get(name)
        tone = "good" if name == field.best or (row and row["verdict"] == "equivalent") else "plain"
        tone = "open" if field.open and (name == field.best or (row and row["verdict"] in OPEN)) else tone
    else:
        tone, verdict = "open", "not ranked"
    failures: dict[tuple[str, str], Failure] = {}
    for cell in cells:
        if cell.failure is not None:
            stage, reason = cell.failure
            failures.setdefault((stage, reason.code), _failure(stage, reason, cell.round))
    if eliminated is not None and not failures:
        # Out by comparison: each of its stages went well by itself.
        stage, code = eliminated["stage"], str(eliminated["code"]).replace("_", " ")
        stages[stage] = StageOutcome("failed", code)
        evidence = tuple(_cut(line) for line in eliminated["evidence"][:MOST_LINES])
        failures[stage, code] = Failure(
            f"{stage}: {code}", _cut(eliminated["reason"]), eliminated.get("remedy"), evidence, ()
        )
    smoke = next((cell.smoke for cell in reversed(cells) if cell.smoke and cell.smoke.get("prompts")), None)
    answers = tuple(
        Answer(_cut(prompt["ask"]), _cut(prompt["text"])) for prompt in (smoke or {}).get("prompts", ())
    )
    return Outcome(name, stages, tone, verdict, tuple(failures.values()), answers, _expected(cells))


def _expected(cells: Sequence[CellFiles]) -> tuple[str, ...]:
    """What was said of a configuration before its last launch, and whether it launched all the same."""
    launches = [cell.launch for cell in cells if cell.launch and cell.launch.get("preflight")]
    if not launches:
        return ()
    ready = any(launch["status"] == "ok" for launch in launches)
    lines = []
    for finding in launches[-1]["preflight"]["findings"]:
        proven = " It launched all the same." if ready and finding["outcome"] in ("refused", "fails") else ""
        lines.append(_cut(f"It {EXPECTATIONS[finding['outcome']]}: {finding['message']}{proven}"))
    return tuple(lines)


def _stage(stage: Stage, files: Sequence[Mapping[str, Any] | None]) -> StageOutcome:
    ran = [file for file in files if file is not None and file["status"] != "skipped"]
    good = [file for file in ran if file["status"] == "ok"]
    if not ran:
        return StageOutcome("none", "not run")
    if not good:
        code = (ran[-1].get("reason") or {}).get("code") or "failed"
        return StageOutcome("failed", str(code).replace("_", " "))
    if len(good) < len(ran):
        return StageOutcome("mixed", f"{len(good)} of {len(ran)} ok")
    return StageOutcome("ok", _passed(stage, good))


def _passed(stage: Stage, good: Sequence[Mapping[str, Any]]) -> str:
    if stage == "launch":
        times = [file["ready_seconds"] for file in good if file.get("ready_seconds")]
        return seconds(sum(times) / len(times), 2) if times else "ready"
    if stage == "smoke":
        prompts = [prompt for file in good for prompt in file.get("prompts") or ()]
        asked = [p for p in prompts if p.get("expectation") and p["expectation"].get("met") is not None]
        met = sum(prompt["expectation"]["met"] for prompt in asked)
        return f"{met} of {len(asked)} right" if asked else count(len(prompts), "answer")
    if stage == "throughput":
        return count(len(good), "round")
    return str(good[-1].get("verdict") or "released")


def _failure(stage: Stage, reason: Reason, round_: int) -> Failure:
    again = ", may pass next time" if reason.kind == "transient" else ""
    return Failure(
        title=f"{stage}, round {round_}: {reason.code.replace('_', ' ')}{again}",
        message=_cut(reason.message),
        remedy=remedy_of(reason),
        evidence=tuple(_cut(line) for line in reason.evidence[:MOST_LINES]),
        links=tuple(link for link in reason.links if link.startswith(("https://", "http://"))),
    )


def _cut(text: str | None) -> str:
    text = text or ""
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]} … ({len(text):,} characters)"

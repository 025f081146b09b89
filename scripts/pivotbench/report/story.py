"""The decision in three sentences, and the few figures that stand beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pivotbench.charts.field import Field, fields, stand_ins
from pivotbench.charts.payoff import finding as speculation_finding
from pivotbench.charts.question import Question
from pivotbench.figures import (
    NO_BREAK,
    count,
    names,
    number,
    percent,
    percent_interval,
    seconds,
    times,
    tok_s,
)

Decision = Mapping[str, Any]
Tone = Literal["good", "open", "bad"]


UNJUDGED = "Nobody judged the answers, so this is a statement on speed alone; see Answers."


@dataclass(frozen=True)
class Story:
    """What stands on top of the report: a headline, three sentences, and how sure they are."""

    tone: Tone
    verdict: str
    headline: str
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class Fact:
    """One figure with its name and a line of what it rests on."""

    name: str
    value: str
    note: str


def story(decision: Decision) -> Story:
    """Return the decision in words; what is open is said as plainly as what is decided."""
    winner, found = decision["winner"], fields(decision)
    if winner is None and decision["ranking"]:
        return Story("open", "Not decided yet", "No configuration is chosen yet", _unfinished(decision))
    if winner is None:
        return Story("bad", "No winner", "No configuration can be recommended", _nothing(decision))
    field = next((f for f in found.values() if f.best in stand_ins(winner)), None)
    if not all(part["judged"] for part in decision["agreement"]):
        text = (_speed(decision, field) if field else "", _backends(decision, found), UNJUDGED)
        return Story("open", "Answers not judged", f"{winner}, by speed alone", text)
    if field is None:
        text = (f"{winner} is the base the study names.", _backends(decision, found), _speculation(decision))
        return Story("open", "Not ranked", f"Serve {winner}", text)
    open_ = _with_verdict(field, "undecided")
    text = (_speed(decision, field), _backends(decision, found), _speculation(decision))
    if open_:
        return Story(
            "open", f"Serve {winner} meanwhile", f"Undecided between {names([winner, *open_], 2)}", text
        )
    if len(field.ranking) == 1:
        return Story("open", "The only one ranked", f"Serve {winner}", text)
    equal = _with_verdict(field, "equivalent")
    if equal:
        return Story("good", f"Decided, with {count(len(equal), 'equivalent')}", f"Serve {winner}", text)
    return Story("good", "Decided", f"Serve {winner}", text)


def facts(decision: Decision) -> list[Fact]:
    """Return speed, confidence, evidence and cost of the decision."""
    question, found = Question.of(decision), []
    own = _own_row(decision)
    if own is not None:
        found.append(Fact("Speed", f"{_bound(own)}{tok_s(own['mean_tok_s'])}", metric_note(question)))
    margin = f"for all verdicts of a phase together; margin {percent(question.margin)}"
    found.append(Fact("Confidence", percent(question.confidence), margin))
    if own is not None:
        noise = decision["confidence"]["noise"].get(own["phase"])
        spread = f"launches spread by {percent(noise['sd'])} (sd)" if noise else "spread of launches unknown"
        found.append(Fact("Evidence", count(own["rounds"], "round"), spread))
    if share := (decision.get("limit") or {}).get("share"):
        found.append(Fact("Memory roofline", percent(share), f"of what {decision['limit']['gpu']} allows"))
    cost = decision["cost"]
    if cost["gpu_seconds"]:
        spent = f"{number(cost['gpu_seconds'] / 3600, 2)}{NO_BREAK}GPU hours"
    else:
        spent = f"{seconds(cost['server_seconds'], 2)} of server time"
    found.append(Fact("Cost", count(cost["launches"], "launch", "launches"), spent))
    return found


def metric_note(question: Question) -> str:
    """Return what the metric is, in few words: its workloads and the load that decides."""
    weighted = len(set(question.workloads.values())) > 1
    mix = names([f"{w} ×{weight:g}" if weighted else w for w, weight in question.workloads.items()])
    return f"{mix}, {question.load.removeprefix('with ')}"


def _bound(row: Mapping[str, Any]) -> str:
    return "at least " if row["at_least"] else ""


def _own_row(decision: Decision) -> Mapping[str, Any] | None:
    names_ = stand_ins(decision["winner"])
    return next((r for r in decision["ranking"] if r["configuration"] in names_), None)


def _with_verdict(field: Field, verdict: str) -> list[str]:
    return [name for name, row in field.others.items() if row["verdict"] == verdict]


def _speed(decision: Decision, field: Field) -> str:
    winner, own = decision["winner"], _own_row(decision)
    assert own is not None
    interval = ""
    if own["ci"]:
        low, high = (number(bound) for bound in own["ci"])
        interval = f"{percent(decision['metric']['confidence'])} interval {low} to {high}, "
    speed = f"{_bound(own)}{tok_s(own['mean_tok_s'])}"
    reach = f"{winner} reaches {speed} ({interval}{count(own['rounds'], 'round')})"
    open_ = _with_verdict(field, "undecided")
    if open_:
        return f"{reach}{_open(field, open_)}. Until then serve {winner}: nothing is shown to be faster."
    equal = _with_verdict(field, "equivalent")
    margin = percent(decision["metric"]["margin"])
    gain = field.others.get(f"{winner.partition('+')[0]}+none") if "+" in winner else None
    parts = [reach]
    if gain and gain.get("ratio"):
        low, high = sorted(1 / bound for bound in gain["ci"])
        parts.append(f"{1 / gain['ratio']:.2f} times its speed without speculation ({low:.2f} to {high:.2f})")
    if equal:
        parts.append(f"and {names(equal)} {_is(equal)} equivalent within {margin}")
    slower = [row for row in field.others.values() if row["verdict"] == "slower" and row.get("ratio")]
    if slower and not equal and not gain:
        second = max(slower, key=lambda row: row["ratio"])
        parts.append(f"{percent(1 / second['ratio'] - 1)} ahead of {second['a']}")
    return ", ".join(parts) + "."


def _backends(decision: Decision, found: Mapping[str, Field]) -> str:
    dead = [row for row in decision["eliminated"] if row["phase"] == "backends"]
    field = found.get("backends")
    tried = len(dead) + (len(field.ranking) if field else 0)
    if not tried:
        return "The base of speculation was given by the study, so no backends were compared."
    if dead:
        broken = [row["configuration"] for row in dead]
        do = "does" if len(dead) == 1 else "do"
        out = f"Of {count(tried, 'backend')}, {len(dead)} {do} not work ({names(broken)})"
    else:
        out = f"All {count(tried, 'backend')} work" if tried > 1 else "The one backend works"
    if field is None or len(field.ranking) < 2:
        return f"{out}."
    best = field.best
    parts = []
    verdicts = {"equivalent": f"equivalent to {best}", "undecided": f"not told apart from {best}"}
    if best == decision["winner"]:
        verdicts = {}  # said in the first sentence already
    for verdict, words in {**verdicts, "slower": "slower"}.items():
        there = _with_verdict(field, verdict)
        if there:
            shown = str(len(there)) if verdict == "slower" else names(there, 2)
            parts.append(f"{shown} {_is(there)} {words}")
    return f"{out}; {names(parts, 4)}." if parts else f"{out}."


def _speculation(decision: Decision) -> str:
    judged = [row for row in decision["speculation"] if row.get("speedup")]
    if not judged:
        return "Speculation was not measured."
    return f"{speculation_finding(judged)}.{_where_it_pays(judged)}"


def _where_it_pays(judged: Sequence[Mapping[str, Any]]) -> str:
    """Say at which load the largest gain was, how sure it is, and what came of the same at other loads."""
    paying = [row for row in judged if row["verdict"] == "pays" and row["ci"]]
    if not paying:
        return ""
    most = max(paying, key=lambda row: float(row["speedup"]))
    low, high = most["ci"]
    said = [f"{times(most['speedup'])} ({low:.2f} to {high:.2f}) with {_streams(most)}"]
    same = ("configuration", "workload")
    for row in judged:
        if row is not most and all(row[key] == most[key] for key in same):
            said.append(f"{row['verdict']} with {_streams(row)}")
    return f" {most['configuration']} on {most['workload']}: {', '.join(said)}."


def _streams(row: Mapping[str, Any]) -> str:
    return count(row["concurrency"], "stream")


def _unfinished(decision: Decision) -> tuple[str, ...]:
    first, dead = decision["ranking"][0], decision["eliminated"]
    so_far = f"{first['configuration']} has the highest mean so far, {tok_s(first['mean_tok_s'])}"
    return (
        f"{so_far}, of {count(len(decision['ranking']), 'configuration')} ranked; "
        "the rounds that would decide are missing.",
        f"Eliminated: {names(_ends(dead))}." if dead else "None is eliminated.",
        "Run the study again: only what is missing is run.",
    )


def _ends(dead: Sequence[Mapping[str, Any]]) -> list[str]:
    return [f"{row['configuration']} at {row['stage']} ({row['code'].replace('_', ' ')})" for row in dead]


def _nothing(decision: Decision) -> tuple[str, ...]:
    dead = decision["eliminated"]
    if not dead:
        return ("Nothing was measured yet, so there is nothing to compare.",)
    stages = _ends(dead)
    return (
        f"Eliminated: {names(stages)}." if len(dead) > 1 else f"{stages[0]} was the only one, and it failed.",
        "The evidence for each stands below, one click away.",
        "Mend or replace them in the study; only what changes is run again.",
    )


def _open(field: Field, open_: list[str]) -> str:
    row = field.others[open_[0]]
    if row.get("ci") and len(open_) == 1:
        place = f"; the interval for {open_[0]} is {percent_interval(row['ci'])} from it"
    else:
        place = f"; {names(open_, 2)} {_is(open_)} not told apart from it"
    needed = max((field.others[name].get("rounds_needed") or 0) for name in open_)
    return f"{place}, and about {count(needed, 'more round')} would likely tell" if needed else place


def _is(items: list[str]) -> str:
    return "is" if len(items) == 1 else "are"

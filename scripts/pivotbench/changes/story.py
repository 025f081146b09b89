"""What changed in one headline and three sentences, and the few figures that stand beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pivotbench.charts.question import Question
from pivotbench.decision.comparison import UNSETTLED
from pivotbench.figures import count, names, number, percent, percent_interval, tok_s
from pivotbench.report.story import Fact, Story, metric_note

Row = Mapping[str, Any]
MOST_CHARACTERS = 240
FATE_PHRASES = {
    "broke": "broke",
    "mended": "was mended",
    "appeared": "is new",
    "vanished": "is gone",
}
VERDICT_PHRASES = {
    "faster": "became faster",
    "slower": "became slower",
    "equivalent": "stayed the same",
    "undecided": "undecided",
    "not_comparable": "not comparable",
}


def story(comparison: Row) -> Story:
    """Return what changed in words; what is open is said as plainly as what is shown."""
    speed, gate = comparison["winner"]["speed"], comparison["gate"]
    told = (_winner(comparison), _others(comparison), _against(gate["reasons"]), _around(comparison))
    text = tuple(filter(None, told))
    if not gate["passed"]:
        said = f"The gate would stop this, for {count(len(gate['reasons']), 'reason')}"
        return Story("bad", said, _headline(comparison), text)
    if speed is None or speed["verdict"] in ("undecided", "not_comparable"):
        return Story("open", "Undecided; the gate lets it pass", _headline(comparison), text)
    return Story("good", "The gate lets it pass", _headline(comparison), text)


def facts(comparison: Row) -> list[Fact]:
    """Return speed, change, what was compared, answers and confidence."""
    found, speed = [], comparison["winner"]["speed"]
    question = Question.of(comparison)
    if speed is not None:
        note = f"it was {tok_s(speed['old_tok_s'])}; {metric_note(question)}"
        found.append(Fact("The winner's speed", tok_s(speed["new_tok_s"]), note))
        interval = percent_interval(speed["ci"]) if speed["ci"] else "no interval"
        rounds = f"{interval}; {speed['old_rounds']} and {count(speed['new_rounds'], 'round')}"
        found.append(Fact("Its change", percent(speed["ratio"] - 1, signed=True), rounds))
    margin = f"for all verdicts on the metric together; margin {percent(question.margin)}"
    found.append(Fact("Confidence", percent(question.confidence), margin))
    found.append(Fact("Compared", f"{len(comparison['speeds'])}", _tally(comparison["speeds"])))
    if answers := comparison["answers"]:
        others = [f"{row['configuration']}: {row['verdict']}" for row in answers if row["verdict"] != "same"]
        same = f"{len(answers) - len(others)} of {len(answers)}"
        found.append(Fact("Same answers", same, names(others, 2) if others else "beyond rounding"))
    return found


def notes(row: Row) -> list[str]:
    """Return what is to be said beside a verdict on speed: why it is open, what would close it, hardware."""
    more = row["rounds_needed"]
    return [
        *([row["reason"]] if row["reason"] not in (None, UNSETTLED) else []),
        *([f"about {count(more, 'more round')} in both would likely tell"] if more else []),
        *row["confounders"],
    ]


def _headline(comparison: Row) -> str:
    old, new, speed = (comparison["winner"][key] for key in ("old", "new", "speed"))
    if new is None:
        return f"No winner any more; it was {old}" if old else "Neither folder has a winner"
    if old is None:
        return f"{new} can be served; before, nothing could"
    same = old == new
    if speed is None:
        return f"{new} wins, as before" if same else f"{new} wins now, {old} won before"
    change, margin = percent(abs(speed["ratio"] - 1)), percent(comparison["metric"]["margin"])
    before = "before" if same else f"{old} was"
    if speed["verdict"] in ("faster", "slower"):
        return f"{new} is {change} {speed['verdict']} than {before}"
    if speed["verdict"] == "equivalent":
        return f"{new} is as fast as {before}, within {margin}"
    if speed["verdict"] == "not_comparable":
        return f"{new} cannot be held against {'its old self' if same else old}"
    return f"Undecided whether {new} is as fast as {before}"


def _winner(comparison: Row) -> str:
    """The winner's figures, or why there are none."""
    old, new, speed = (comparison["winner"][key] for key in ("old", "new", "speed"))
    if speed is None:
        return "" if old is None or new is None else "No speed of the winners is known in both folders."
    who = "it" if old == new else old
    levels = f"{tok_s(speed['new_tok_s'])} where {who} gave {number(speed['old_tok_s'])}"
    interval = f": {percent_interval(speed['ci'])}" if speed["ci"] else ""
    return f"{'; '.join((f'{new} gives {levels}{interval}', *notes(speed)))}."


def _others(comparison: Row) -> str:
    """How many moved, and who appeared, broke or went."""
    parts = []
    if comparison["speeds"]:
        parts.append(
            f"Of {count(len(comparison['speeds']), 'configuration')} compared: {_tally(comparison['speeds'])}"
        )
    for fate, words in FATE_PHRASES.items():
        if who := [row["configuration"] for row in comparison["configurations"] if row["fate"] == fate]:
            parts.append(f"{names(who)} {words if len(who) == 1 else _plural(words)}")
    return f"{'; '.join(parts)}." if parts else ""


def _against(reasons: Sequence[str]) -> str:
    """The gate's first reason; the changelog has them all."""
    if not reasons:
        return ""
    first = reasons[0] if len(reasons[0]) <= MOST_CHARACTERS else f"{reasons[0][:MOST_CHARACTERS]} …"
    more = f" and {count(len(reasons) - 1, 'reason')} more" if len(reasons) > 1 else ""
    return f"Against it: {first}{more}."


def _plural(words: str) -> str:
    return words.replace("was ", "were ").replace("is ", "are ")


def _tally(speeds: Sequence[Row]) -> str:
    verdicts = [row["verdict"] for row in speeds]
    said = [f"{verdicts.count(v)} {words}" for v, words in VERDICT_PHRASES.items() if v in verdicts]
    return names(said, len(VERDICT_PHRASES)) if said else "nothing ran to its end in both"


def _around(comparison: Row) -> str:
    """What else changed: what no ratio can be told apart from."""
    changed = [
        f"{row['what']} ({row['old'] or 'none'} → {row['new'] or 'none'})"
        for row in comparison["environment"]
    ]
    if changed:
        return f"Also changed: {names(changed)}; no ratio can be told apart from that."
    return "Nothing else changed that both recorded; what the machine itself did between them is unknown."

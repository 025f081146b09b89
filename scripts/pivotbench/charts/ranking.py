"""Who is faster: means with intervals over rounds, against the band that counts as equal to the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from pivotbench.charts.hues import Hues, focus_opacity, plain_name
from pivotbench.charts.layout import MOST_ROWS, WIDTH, described, inline, row_height
from pivotbench.charts.question import Question
from pivotbench.charts.reach import Reach
from pivotbench.figures import (
    count,
    names,
    number,
    percent,
    percent_interval,
    tok_s,
)

Comparison = Mapping[str, Any]
OPEN = ("undecided", "not_comparable")


@dataclass(frozen=True)
class Field:
    """The ranked configurations of one phase, the best of them, and how each other stands to it.

    ``others`` maps a name to its comparison with the best, turned so that ratio and verdict are the other's.
    """

    ranking: Sequence[Mapping[str, Any]]
    best: str
    others: Mapping[str, Comparison]

    @property
    def standing(self) -> str:
        """What the others are held against: the best, or only the baseline, or only the highest mean."""
        leads = self.best == self.ranking[0]["configuration"]
        if self.best.endswith("+none") and not leads:
            return "baseline"
        return "best" if leads and not self.open else "highest mean" if leads else "chosen"

    @property
    def open(self) -> bool:
        """Whether anybody is not told apart from the best."""
        return any(row["verdict"] in OPEN for row in self.others.values())


def stand_ins(winner: str | None) -> tuple[str, ...]:
    """Return the names under which a winner may be ranked: its own, or that of its relaunch as baseline."""
    return (winner, f"{winner}+none") if winner else ()


def fields(decision: Mapping[str, Any]) -> dict[str, Field]:
    """Return the field of each phase that has one; the winner is the best of its phase."""
    found: dict[str, Field] = {}
    for phase in dict.fromkeys(row["phase"] for row in decision["ranking"]):
        ranking = [row for row in decision["ranking"] if row["phase"] == phase]
        names_ = [row["configuration"] for row in ranking]
        best = next((name for name in stand_ins(decision["winner"]) if name in names_), names_[0])
        others: dict[str, Comparison] = {}
        for row in decision["comparisons"]:
            if row["phase"] == phase and best in (row["a"], row["b"]):
                seen = turned(row) if row["a"] == best else row
                others[seen["a"]] = seen
        found[phase] = Field(ranking, best, others)
    return found


def turned(row: Comparison) -> dict[str, Any]:
    """Return a comparison of a with b as one of b with a."""
    verdicts = {"faster": "slower", "slower": "faster"}
    ratio, interval = row.get("ratio"), row.get("ci")
    return {
        **row,
        "a": row["b"],
        "b": row["a"],
        "ratio": 1 / ratio if ratio else ratio,
        "ci": [1 / interval[1], 1 / interval[0]] if interval and all(interval) else interval,
        "verdict": verdicts.get(row["verdict"], row["verdict"]),
    }


def finding(field: Field, margin: float) -> str:
    """Return what a phase's ranking shows, in one sentence."""
    best, others = field.best, field.others
    speed = tok_s(next(r["mean_tok_s"] for r in field.ranking if r["configuration"] == best))
    if len(field.ranking) == 1:
        return f"{best} is the only one ranked, at {speed}"
    by_verdict: dict[str, list[str]] = {}
    for name, row in others.items():
        by_verdict.setdefault(row["verdict"], []).append(name)
    open_names, equal_names = by_verdict.get("undecided", []), by_verdict.get("equivalent", [])
    if open_names:
        text = f"Undecided between {names([best, *open_names])}"
        interval = others[open_names[0]].get("ci")
        if len(open_names) == 1 and interval:
            text += f", which is {percent_interval(interval)} from it"
        return text
    if equal_names:
        return f"{names([best, *equal_names], 3)} are equivalent within {percent(margin)}, at {speed}"
    slower = [row for row in others.values() if row["verdict"] == "slower" and row.get("ratio")]
    if slower:
        second = max(slower, key=lambda row: row["ratio"])
        return f"{best} is fastest at {speed}, {percent(1 / second['ratio'] - 1)} ahead of {second['a']}"
    return f"{best} has the highest mean, {speed}; no comparison is decided"


def verdict_words(name: str, field: Field) -> str:
    """Return the verdict on one configuration, short enough to stand beside its point."""
    if name == field.best:
        return field.standing if len(field.ranking) > 1 else ""
    row = field.others.get(name)
    if row is None:
        return ""
    if row["verdict"] in ("slower", "faster") and row.get("ratio"):
        return f"{percent(row['ratio'] - 1, signed=True)}, {row['verdict']}"
    if row["verdict"] == "undecided" and row.get("rounds_needed"):
        return f"undecided, ~{count(row['rounds_needed'], 'round')} more"
    return str(row["verdict"]).replace("_", " ")


def ranking_chart(field: Field, question: Question, hues: Hues) -> alt.TopLevelMixin:
    """Return the ranking of one phase."""
    shown = _shown(field)
    order = [row["configuration"] for row in shown]
    dots = [
        {
            "name": plain_name(row["configuration"]),
            "configuration": row["configuration"],
            "series": hues.series(row["configuration"]),
            "tok_s": each["tok_s"],
            "round": each["round"],
        }
        for row in shown
        for each in row["by_round"]
    ]
    reference = next(row["mean_tok_s"] for row in field.ranking if row["configuration"] == field.best)
    band = [{"low": reference / (1 + question.margin), "high": reference * (1 + question.margin)}]
    measured = [row["mean_tok_s"] for row in shown] + [dot["tok_s"] for dot in dots]
    reach = Reach.of([*measured, *band[0].values()], [row.get("ci") for row in shown])
    rows = [
        {
            "name": plain_name(row["configuration"]),
            "configuration": row["configuration"],
            "series": hues.series(row["configuration"]),
            "mean": row["mean_tok_s"],
            **dict(zip(("low", "high"), reach.within(row.get("ci")), strict=True)),
            "interval": f"{number(row['ci'][0])} to {number(row['ci'][1])}" if row.get("ci") else "none",
            "verdict": verdict_words(row["configuration"], field),
            "figure": number(row["mean_tok_s"]),
            "note": "  ·  ".join(
                filter(None, (number(row["mean_tok_s"]), verdict_words(row["configuration"], field)))
            ),
            "end": max(
                row["mean_tok_s"],
                reach.within(row.get("ci"))[1] or 0,
                *(each["tok_s"] for each in row["by_round"]),
            ),
        }
        for row in shown
    ]
    low, high = reach.low, reach.high
    room = (high - low) or high
    scale = alt.Scale(domain=[max(0.0, low - 0.06 * room), high + 0.42 * room], zero=False, nice=False)
    x = alt.X("mean:Q", title="Output tok/s", scale=scale, axis=alt.Axis(tickCount=6))
    y = alt.Y("configuration:N", sort=order, title=None, axis=alt.Axis(grid=False))
    base = alt.Chart(inline(rows))
    tooltip = [
        alt.Tooltip("configuration:N", title="Configuration"),
        alt.Tooltip("mean:Q", title="Mean, tok/s", format=".4g"),
        alt.Tooltip("interval:N", title="Interval"),
        alt.Tooltip("verdict:N", title="Verdict"),
    ]
    chart = alt.layer(
        alt.Chart(inline(band)).mark_rect(style="band").encode(x=alt.X("low:Q"), x2="high:Q"),
        base.mark_rule(style="interval").encode(
            x=alt.X("low:Q"), x2="high:Q", y=y, color=hues.color(), opacity=focus_opacity()
        ),
        alt.Chart(inline(dots))
        .mark_tick(thickness=1.5, size=11)
        .encode(
            x=alt.X("tok_s:Q"),
            y=y,
            color=hues.color(),
            opacity=focus_opacity(0.6),
            tooltip=[
                alt.Tooltip("configuration:N", title="Configuration"),
                alt.Tooltip("round:Q", title="Round"),
                alt.Tooltip("tok_s:Q", title="tok/s", format=".4g"),
            ],
        ),
        base.mark_point(filled=True, size=95, opacity=1).encode(
            x=x, y=y, color=hues.color(), opacity=focus_opacity(), tooltip=tooltip
        ),
        base.transform_calculate(words="narrow ? datum.figure : datum.note")
        .mark_text(style="label", align="left", dx=12)
        .encode(x=alt.X("end:Q"), y=y, text="words:N", opacity=focus_opacity()),
    ).properties(width=WIDTH, height=row_height(len(rows)) * len(rows))
    caption = (
        f"Mean over rounds of {question.label}, with its {percent(question.confidence)} interval; ticks are "
        "single rounds. "
        f"Shaded: within {percent(question.margin)} of {field.best}."
    )
    caption += reach.note
    if len(shown) < len(field.ranking):
        caption += f" The fastest {MOST_ROWS} of {len(field.ranking)} are shown."
    return described(chart, finding(field, question.margin), caption)


def _shown(field: Field) -> list[Mapping[str, Any]]:
    """The fastest, as many as are legible; the one the others are held against is always among them."""
    return [
        row
        for place, row in enumerate(field.ranking)
        if place < MOST_ROWS or row["configuration"] == field.best
    ]

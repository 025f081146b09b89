"""Who is faster: means with intervals over rounds, against the band that counts as equal to the best."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

from pivotbench.charts.field import Field, plain_name, verdict_words
from pivotbench.charts.hues import Hues, focus_opacity
from pivotbench.charts.layout import MOST_ROWS, WIDTH, described, inline, row_height
from pivotbench.charts.question import Question
from pivotbench.charts.reach import Reach
from pivotbench.figures import names, number, percent, percent_interval, tok_s


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

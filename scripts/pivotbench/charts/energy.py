"""What a token costs in energy: joules per output token at the load that decides, a point a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import pandas as pd

from pivotbench.charts.field import plain_name
from pivotbench.charts.hues import Hues, focus_opacity
from pivotbench.charts.layout import MOST_ROWS, WIDTH, Figures, described, inline, row_height
from pivotbench.charts.question import Question
from pivotbench.figures import NO_BREAK, number


def joules_by_round(samples: pd.DataFrame) -> pd.DataFrame:
    """Return one row a configuration and round: ``joules`` per output token, mean over the samples' loads.

    The base relaunched for phase two counts with the base of phase one.
    """
    told = samples.dropna(subset=["energy_j_per_token"])
    told = told.assign(name=told["configuration"].map(plain_name))
    loads = told.groupby(["name", "phase", "round", "workload"], as_index=False)["energy_j_per_token"].mean()
    rounds = loads.groupby(["name", "phase", "round"], as_index=False)["energy_j_per_token"].mean()
    joules: pd.DataFrame = rounds.rename(columns={"energy_j_per_token": "joules"})
    return joules


def finding(means: Mapping[str, float]) -> str:
    """Return what a token costs; no verdict is made on energy, so nobody is called the best."""
    low, high = min(means.values()), max(means.values())
    if len(means) == 1:
        return f"A token costs {number(low)}{NO_BREAK}J with {next(iter(means))}"
    least = min(means, key=lambda name: means[name])
    most = max(means, key=lambda name: means[name])
    return f"A token costs {number(low)}{NO_BREAK}J ({least}) to {number(high)}{NO_BREAK}J ({most})"


def energy_chart(
    decision: Mapping[str, Any], measurements: pd.DataFrame, hues: Hues
) -> alt.TopLevelMixin | None:
    """Return energy per token, or None where no energy was told."""
    question = Question.of(decision)
    rounds = joules_by_round(question.samples(measurements))
    if rounds.empty:
        return None
    spans = rounds.groupby("name")["joules"].agg(["mean", "min", "max", "count"]).sort_values("mean")
    means = {str(name): float(value) for name, value in spans["mean"].items()}
    order = list(means)
    shown = order[:MOST_ROWS]
    ends = {str(name): float(value) for name, value in spans["max"].items()}
    points = [
        {
            "name": n,
            "series": hues.series(n),
            "joules": round(means[n], 5),
            "figure": number(means[n]),
            "end": ends[n],
        }
        for n in shown
    ]
    ticks = [
        {"name": r["name"], "series": hues.series(r["name"]), "round": r["round"], "joules": r["joules"]}
        for r in rounds.to_dict("records")
        if r["name"] in set(shown)
    ]
    x = alt.X(
        "joules:Q",
        title="Joules per output token",
        scale=alt.Scale(domain=[0, 1.25 * max(ends[n] for n in shown)], nice=False),
        axis=alt.Axis(tickCount=6),
    )
    y = alt.Y("name:N", sort=shown, title=None, axis=alt.Axis(grid=False))
    base = alt.Chart(inline(points))
    name = alt.Tooltip("name:N", title="Configuration")
    chart = alt.layer(
        base.mark_bar(style="ray", height=1.5).encode(x=x, y=y),
        alt.Chart(inline(ticks))
        .mark_tick(thickness=1.5, size=11)
        .encode(
            x=x,
            y=y,
            color=hues.color(),
            opacity=focus_opacity(0.6),
            tooltip=[
                name,
                alt.Tooltip("round:Q", title="Round"),
                alt.Tooltip("joules:Q", title="J/token", format=".3g"),
            ],
        ),
        base.mark_point(filled=True, size=95, opacity=1).encode(
            x=x,
            y=y,
            color=hues.color(),
            opacity=focus_opacity(),
            tooltip=[name, alt.Tooltip("joules:Q", title="J/token", format=".3g")],
        ),
        base.mark_text(style="label", align="left", dx=12).encode(
            x=alt.X("end:Q"), y=y, text="figure:N", opacity=focus_opacity()
        ),
    ).properties(width=WIDTH, height=row_height(len(shown)) * len(shown))
    caption = (
        f"Energy of all GPUs, without one that of the processors, over output tokens, {question.load}; "
        "means over rounds, which are the ticks. Less is better."
    )
    if len(shown) < len(order):
        caption += f" The {len(shown)} that need least of {len(order)} are shown."
    table = Figures(
        ("Configuration", "Mean, J/token", "Least", "Most", "Rounds"),
        [
            (str(n), *(number(float(row[k])) for k in ("mean", "min", "max")), str(int(row["count"])))
            for n, row in spans.iterrows()
        ],
    )
    return described(chart, finding(means), caption, table=table)

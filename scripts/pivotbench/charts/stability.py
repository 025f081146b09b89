"""How steady the numbers are: every window and every round over the campaign, against its own mean."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from pivotbench.charts.crowd import drawn, note
from pivotbench.charts.deviations import CELL, LOAD, deviations_in_time
from pivotbench.charts.field import plain_name
from pivotbench.charts.hues import OTHERS, Hues, focus_opacity
from pivotbench.charts.layout import WIDTH, Figures, described, inline
from pivotbench.charts.question import Question, metric_rounds
from pivotbench.evidence import CellFiles
from pivotbench.figures import count, percent

Point = dict[str, Any]
MOST_WINDOWS = 1500  # more are a cloud, and weigh
FARTHEST = 20  # configurations that are drawn for it, of a crowd


def between_rounds_sd(rounds: pd.DataFrame) -> float | None:
    """Return the pooled relative standard deviation of round means, None where all have one round."""
    logs = rounds.assign(log=np.log(rounds["tok_s"])).groupby(["phase", "configuration"])["log"]
    freedom = int((logs.size() - 1).sum())
    if freedom == 0:
        return None
    squares = float(((logs.size() - 1) * logs.var().fillna(0)).sum())
    return float(np.sqrt(squares / freedom))


def within_round_sd(samples: pd.DataFrame) -> float | None:
    """Return the pooled relative standard deviation of windows around their own round, or None."""
    logs = samples.assign(log=np.log(samples["output_tok_s"])).groupby([*CELL, *LOAD], dropna=False)["log"]
    freedom = int((logs.size() - 1).sum())
    if freedom == 0:
        return None
    return float(np.sqrt(float(((logs.size() - 1) * logs.var().fillna(0)).sum()) / freedom))


def finding(samples: pd.DataFrame, rounds: pd.DataFrame, margin: float) -> str:
    """Return how far a relaunch and a window move the speed, and how many rounds left the margin."""
    between, within = between_rounds_sd(rounds), within_round_sd(samples)
    if between is None:
        return "One round each: what a relaunch changes is not known yet"
    windows = f", a window by {percent(within)}" if within is not None else ""
    means = rounds.groupby(["phase", "configuration"])["tok_s"].transform("mean")
    astray = int((np.abs(rounds["tok_s"] / means - 1) > margin).sum())
    limit = f"{percent(margin)} margin"
    outcome = f"{count(astray, 'round')} left the {limit}" if astray else f"no round left the {limit}"
    return f"A relaunch moves speed by {percent(between)} (sd){windows}; {outcome}"


def stability_chart(
    decision: Mapping[str, Any], measurements: pd.DataFrame, cells: Sequence[CellFiles], hues: Hues
) -> alt.TopLevelMixin | None:
    """Return deviations over time, or None where the metric has no samples."""
    question = Question.of(decision)
    samples = question.samples(measurements)
    # A window between two bursts may hold no token: it counts in its round's mean, and has no logarithm.
    samples = samples[samples["output_tok_s"] > 0]
    if samples.empty:
        return None
    table, timed = deviations_in_time(samples, cells)
    rounds = round_points(table, hues)
    every = frozenset(row["name"] for row in rounds)
    farthest = dict.fromkeys(r["name"] for r in sorted(rounds, key=lambda r: -abs(r["deviation"])))
    shown = drawn(decision, hues, every, also=list(farthest)[:FARTHEST])
    of_shown = table[table["configuration"].map(plain_name).isin(shown)]
    small = len(of_shown) <= MOST_WINDOWS
    windows = in_order(window_points(of_shown, hues) if small else [])
    rounds_shown = in_order(row for row in rounds if row["name"] in shown)
    chart = marks(windows, rounds_shown, question.margin, hues, timed=timed)
    inside = "small ones its time windows" if small else "its time windows are too many to draw"
    caption = (
        f"Large points are rounds (one relaunch each), {inside}, each against the mean of its configuration. "
        f"Shaded: the equivalence margin, ±{percent(question.margin)}."
    )
    caption += note(shown, every, also=f"the {FARTHEST} that moved most")
    found = finding(samples, metric_rounds(decision), question.margin)
    return described(chart, found, caption, hues.legend(shown), figures(rounds))


def window_points(table: pd.DataFrame, hues: Hues) -> list[Point]:
    """Return a point a window of ``deviations_in_time``."""
    return [point(row, hues) | {"workload": row["workload"]} for row in table.to_dict("records")]


def round_points(table: pd.DataFrame, hues: Hues) -> list[Point]:
    """Return a point a round: the means of its windows; ``line`` joins those of one configuration."""
    means = table.groupby(CELL, as_index=False)[["deviation", "at"]].mean()
    return [
        point(row, hues) | {"line": f"{row['phase']} {row['configuration']}"}
        for row in means.to_dict("records")
    ]


def point(row: Mapping[Hashable, Any], hues: Hues) -> Point:
    """Return what windows and rounds have in common."""
    return {
        "name": plain_name(row["configuration"]),
        "series": hues.series(row["configuration"]),
        "round": row["round"],
        "at": round(row["at"], 3),
        "deviation": round(row["deviation"], 5),
    }


def in_order(points: Iterable[Point]) -> list[Point]:
    """Return points in the order of drawing: later ones lie over earlier ones."""
    return sorted(points, key=lambda row: row["series"] != OTHERS)


def marks(
    windows: Sequence[Point], rounds: Sequence[Point], margin: float, hues: Hues, *, timed: bool
) -> alt.LayerChart | alt.FacetChart:
    """Return the chart: the margin as a band, a line a configuration, its windows and rounds as points."""
    reach = 1.12 * max([margin, *(abs(row["deviation"]) for row in [*windows, *rounds])])
    y = alt.Y(
        "deviation:Q",
        title="Distance from own mean",
        scale=alt.Scale(domain=[-reach, reach], nice=False),
        axis=alt.Axis(format="+.0%", tickCount=5, labelExpr="datum.value === 0 ? 'mean' : datum.label"),
    )
    x = alt.X(
        "at:Q",
        title="Minutes into the campaign" if timed else "Round",
        scale=alt.Scale(zero=False, nice=False, padding=14),
        axis=alt.Axis(grid=False, tickCount=8)
        if timed
        else alt.Axis(grid=False, values=sorted({int(row["round"]) for row in rounds}), format="d"),
    )
    series = hues.color(row["name"] for row in rounds)
    averages = alt.Chart(inline(rounds))
    return alt.layer(
        alt.Chart(inline([{"low": -margin, "high": margin}]))
        .mark_rect(style="band")
        .encode(y=alt.Y("low:Q"), y2="high:Q"),
        alt.Chart(inline([{"zero": 0}])).mark_rule(style="guide").encode(y=alt.Y("zero:Q")),
        averages.mark_line(strokeWidth=1.25).encode(
            x=x, y=y, color=series, detail="line:N", opacity=focus_opacity(0.45, 0.06, others=0.12)
        ),
        alt.Chart(inline(windows))
        .mark_point(filled=True, size=16)
        .encode(
            x=x,
            y=y,
            color=series,
            opacity=focus_opacity(0.45, 0.08, others=0.25),
            tooltip=sample_tooltip(window=True),
        ),
        averages.mark_point(filled=True, size=80).encode(
            x=x, y=y, color=series, opacity=focus_opacity(others=0.5), tooltip=sample_tooltip(window=False)
        ),
    ).properties(width=WIDTH, height=260)


def figures(rounds: Sequence[Mapping[str, Any]]) -> Figures:
    """Return by configuration how many rounds there were and how far they lay from its mean."""
    found: dict[str, list[float]] = {}
    for row in rounds:
        found.setdefault(row["name"], []).append(row["deviation"])
    return Figures(
        ("Configuration", "Rounds", "Slowest round", "Fastest round"),
        [
            (name, str(len(each)), percent(min(each), signed=True), percent(max(each), signed=True))
            for name, each in sorted(found.items())
        ],
    )


def sample_tooltip(*, window: bool) -> list[alt.Tooltip]:
    """Return what a point says of itself."""
    workload = [alt.Tooltip("workload:N", title="Workload")] if window else []
    return [
        alt.Tooltip("name:N", title="Configuration"),
        alt.Tooltip("round:Q", title="Round"),
        *workload,
        alt.Tooltip("deviation:Q", title="From own mean", format="+.1%"),
    ]

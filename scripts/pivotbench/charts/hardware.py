"""What the hardware did in each round: power, clock and temperature over the campaign."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import altair as alt

from pivotbench.charts.crowd import drawn, note
from pivotbench.charts.deviations import minutes_into_campaign
from pivotbench.charts.field import plain_name
from pivotbench.charts.hues import OTHERS, Hues, focus_opacity
from pivotbench.charts.layout import WIDTH, described, inline
from pivotbench.charts.question import Question, of_metric
from pivotbench.evidence import CellFiles
from pivotbench.figures import NO_BREAK, count, number

STRIP_HEIGHT = 84
STEADY = 0.01

Run = Mapping[str, Any]


@dataclass(frozen=True)
class Quantity:
    """One strip of the chart: ``key`` is the name in a run's telemetry."""

    key: str
    title: str
    word: str
    unit: str


GPU = (
    Quantity("power_w", "Power of all GPUs, W", "power", "W"),
    Quantity("sm_clock_mhz", "SM clock, MHz", "clocks", "MHz"),
    Quantity("temperature_c", "GPU temperature, °C", "temperature", "°C"),
)
HOST = (
    Quantity("power_w", "Power of the processors, W", "power", "W"),
    Quantity("frequency_mhz", "Processor clock, MHz", "clocks", "MHz"),
    Quantity("temperature_c", "Processor temperature, °C", "temperature", "°C"),
    Quantity("cpu_percent", "Processors busy, %", "load of the processors", "%"),
)


def readings(metric: Mapping[str, Any], cells: Iterable[CellFiles], hues: Hues) -> list[dict[str, Any]]:
    """Return one row a cell and quantity: mean, least and most over its runs at the metric's loads."""
    kept = [cell for cell in cells if cell.measured]
    begun = minutes_into_campaign(kept)
    rows: list[dict[str, Any]] = []
    for cell in kept:
        runs = [
            run["telemetry"]
            for run in (cell.throughput or {}).get("runs") or []
            if run.get("telemetry") and of_metric(metric, run)
        ]
        on_gpu = any(run.get("aggregate") for run in runs)
        for quantity in GPU if on_gpu else HOST:
            told = [each for run in runs if (each := _devices(run).get(quantity.key))]
            if not told:
                continue
            rows.append(
                {
                    "name": plain_name(cell.configuration),
                    "series": hues.series(cell.configuration),
                    "round": cell.round,
                    "at": round(begun.get((cell.phase, cell.configuration, cell.round), 0.0), 3),
                    "quantity": quantity.title,
                    "mean": round(fmean(each["mean"] for each in told), 3),
                    "low": round(min(each.get("min", each["mean"]) for each in told), 3),
                    "high": round(max(each.get("max", each["mean"]) for each in told), 3),
                    "throttled": any(run.get("throttled") for run in runs),
                }
            )
    rows.sort(key=lambda row: row["series"] != OTHERS)  # later ones are drawn over earlier ones
    return rows


def _devices(run: Run) -> Mapping[str, Any]:
    found: Mapping[str, Any] = run.get("aggregate") or run.get("host") or {}
    return found


def finding(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return how many rounds were throttled, and between what the means of the rounds lie."""
    throttled = {(row["name"], row["at"]) for row in rows if row["throttled"]}
    parts = [f"{count(len(throttled), 'round')} of throttled clocks"] if throttled else []
    for quantity in [*GPU, *HOST]:
        means = [row["mean"] for row in rows if row["quantity"] == quantity.title]
        if not means:
            continue
        low, high = min(means), max(means)
        if high - low <= STEADY * high:
            parts.append(f"{quantity.word} steady at {number(high)}{NO_BREAK}{quantity.unit}")
        else:
            parts.append(f"{quantity.word} {number(low)} to {number(high)}{NO_BREAK}{quantity.unit}")
    text = ", ".join(parts)
    return text[:1].upper() + text[1:]


def hardware_chart(
    decision: Mapping[str, Any], cells: Iterable[CellFiles], hues: Hues
) -> alt.TopLevelMixin | None:
    """Return the strips of what was told, one below the other, or None where nothing was."""
    question = Question.of(decision)
    read = readings(decision["metric"], cells, hues)
    if not read:
        return None
    every = frozenset(row["name"] for row in read)
    shown = drawn(decision, hues, every, also=(row["name"] for row in read if row["throttled"]))
    rows = [row for row in read if row["name"] in shown]
    titles = [quantity.title for quantity in [*GPU, *HOST]]
    there = [title for title in titles if any(row["quantity"] == title for row in rows)]
    x = alt.X(
        "at:Q",
        title="Minutes into the campaign",
        scale=alt.Scale(zero=False, nice=False, padding=14),
        axis=alt.Axis(grid=False, tickCount=8, tickMinStep=0),
    )
    y = alt.Y("mean:Q", title=None, scale=alt.Scale(zero=False, padding=8), axis=alt.Axis(tickCount=3))
    color = hues.color(row["name"] for row in rows)
    tooltip = [
        alt.Tooltip("name:N", title="Configuration"),
        alt.Tooltip("round:Q", title="Round"),
        alt.Tooltip("quantity:N", title="Quantity"),
        alt.Tooltip("mean:Q", title="Mean", format=",.4~g"),
        alt.Tooltip("low:Q", title="Least", format=",.4~g"),
        alt.Tooltip("high:Q", title="Most", format=",.4~g"),
    ]
    base = alt.Chart()
    strips = alt.layer(
        base.mark_rule(style="interval").encode(
            x=x, y=alt.Y("low:Q"), y2="high:Q", color=color, opacity=focus_opacity(0.6, others=0.25)
        ),
        base.mark_point(filled=True, size=64).encode(
            x=x, y=y, color=color, opacity=focus_opacity(others=0.5), tooltip=tooltip
        ),
    ).properties(width=WIDTH, height=STRIP_HEIGHT)
    chart = strips.facet(
        facet=alt.Facet("quantity:N", title=None, sort=there),
        data=inline(rows),
        columns=1,
        spacing=14,
    ).resolve_scale(y="independent")
    caption = (
        f"A point is the mean of one round {question.load}, a line from the least to the most that was read "
        "meanwhile."
    )
    caption += note(shown, every, also="those whose clocks were throttled")
    return described(chart, finding(read), caption, hues.legend(row["name"] for row in rows))

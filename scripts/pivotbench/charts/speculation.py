"""Does speculation pay: measured speed-up against acceptance length, with the line where it breaks even."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from pivotbench.charts.field import plain_name
from pivotbench.charts.hues import Hues, focus_opacity
from pivotbench.charts.layout import PANEL_HEIGHT, Entry, described, inline, panel_width
from pivotbench.charts.payoff import finding
from pivotbench.charts.reach import Reach

SHAPES = ("circle", "diamond", "square", "triangle-up")
STEP_COSTS = (1.0, 1.25, 1.5, 2.0, 3.0)


def speculation_chart(decision: Mapping[str, Any], hues: Hues) -> alt.TopLevelMixin | None:
    """Return speed-up against acceptance length, a panel a workload, or None where none was measured."""
    measured = [row for row in decision["speculation"] if row.get("speedup")]
    concurrency = decision["metric"]["concurrency"]
    placed = [row for row in measured if row.get("acceptance_length")]
    if not placed:
        return None
    reach = Reach.of([1.0, *(row["speedup"] for row in placed)], [row.get("ci") for row in placed])
    rows = [
        {
            "kind": "point",
            "name": plain_name(row["configuration"]),
            "series": hues.series(row["configuration"]),
            "workload": panel_name(row),
            "deciding": concurrency in (None, row["concurrency"]),
            "streams": f"{row['concurrency']} stream{'s' if row['concurrency'] != 1 else ''}",
            "L": row["acceptance_length"],
            "speedup": row["speedup"],
            **dict(zip(("low", "high"), reach.within(row.get("ci")), strict=True)),
            "interval": f"{row['ci'][0]:.2f} to {row['ci'][1]:.2f}" if row.get("ci") else "none",
            "r": row.get("step_cost_ratio"),
            "even": row.get("break_even") if (row.get("break_even") or 0) >= 1 else None,
            "verdict": row["verdict"],
            "why": row.get("why") or "",
        }
        for row in placed
    ]
    rows.sort(key=lambda row: not row["deciding"])
    workloads = list(dict.fromkeys(row["workload"] for row in rows))
    longest = max(2.0, 1.1 * max(max(row["L"], row["even"] or 0) for row in rows))
    tallest, lowest = max(1.3, 1.08 * reach.high), min(0.8, 0.92 * reach.low)
    x = alt.X(
        "L:Q",
        title="Acceptance length (tokens per target pass)",
        scale=alt.Scale(domain=[1 - 0.04 * (longest - 1), longest], nice=False, zero=False),
        axis=alt.Axis(grid=False, tickCount=5, format=".1f"),
    )
    y = alt.Y(
        "speedup:Q",
        title="Speed-up over no speculation",
        scale=alt.Scale(domain=[lowest, tallest], nice=False, zero=False),
        axis=alt.Axis(
            grid=False,
            tickCount=5,
            labelExpr="datum.value === 1 ? 'break-even' : format(datum.value, '.1f') + '×'",
        ),
    )
    chart = alt.layer(*guides(x, y), *marks(x, y, hues.color(row["name"] for row in rows))).properties(
        width=panel_width(len(workloads)), height=PANEL_HEIGHT + 20
    )
    panels = chart.facet(
        facet=alt.Facet("workload:N", title=None, sort=workloads),
        data=inline([*rows, *rays(workloads, longest, lowest, tallest)]),
        columns=2,
    )
    caption = (
        "Above the break-even line speculation is faster than the same configuration without it; ticks on it "
        "are the acceptance lengths needed for that. Grey rays: speed-up if a speculative step costs "
        f"that many plain ones.{reach.note}"
    )
    levels = list(dict.fromkeys((row["streams"], row["deciding"]) for row in rows))
    legend = [
        *hues.legend(row["name"] for row in rows),
        *(Entry(n, shape=shape, hollow=not main) for (n, main), shape in zip(levels, SHAPES, strict=False)),
    ]
    return described(panels, finding(measured), caption, legend)


def panel_name(row: Mapping[str, Any]) -> str:
    """Return the panel of a verdict; evidence that is not real text says so."""
    evidence = row.get("evidence", "text")
    if evidence == "text":
        return str(row["workload"])
    return f"{row['workload']} ({evidence}: cannot judge)"


def rays(workloads: Sequence[str], longest: float, lowest: float, tallest: float) -> list[dict[str, Any]]:
    """Return the ends of lines of equal step cost r, speed-up = L / r, cut to the plot."""
    ends: list[dict[str, Any]] = []
    for workload in workloads:
        even = {"kind": "even", "workload": workload, "L": longest, "speedup": 1.0}
        ends.append(even)
        for cost in STEP_COSTS:
            stop = min(longest, tallest * cost)
            if stop <= 1.0 + 0.1 * (longest - 1.0):
                continue
            ray = {"kind": "ray", "workload": workload, "cost": cost}
            start = max(1.0, lowest * cost)
            ends.append({**ray, "L": start, "speedup": start / cost, "note": ""})
            ends.append({**ray, "L": stop, "speedup": stop / cost, "note": f"{cost:g}×"})
    return ends


def guides(x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """Return the break-even line and the rays of equal step cost."""
    ray = alt.Chart().transform_filter("datum.kind === 'ray'")
    even = alt.Chart().transform_filter("datum.kind === 'even'")
    return [
        ray.mark_line(style="ray").encode(x=x, y=y, detail="cost:N"),
        ray.mark_text(style="note", align="right", dx=-5, dy=4).encode(x=x, y=y, text="note:N"),
        even.mark_rule(style="guide").encode(y=y),
    ]


def marks(x: alt.X, y: alt.Y, color: alt.Color) -> list[alt.Chart]:
    """Return the measured points with their intervals; the shape tells the concurrency."""
    points = alt.Chart().transform_filter("datum.kind === 'point'")
    shape = alt.Shape(
        "streams:N", sort=None, legend=alt.Legend(title=None), scale=alt.Scale(range=list(SHAPES))
    )
    needed = points.transform_filter("datum.even !== null")
    return [
        needed.mark_tick(thickness=2, size=12, orient="vertical").encode(
            x=alt.X("even:Q"), y=alt.datum(1), color=color, opacity=focus_opacity(0.8)
        ),
        points.mark_rule(style="interval").encode(
            x=x,
            y=alt.Y("low:Q"),
            y2="high:Q",
            color=color,
            strokeWidth=alt.condition("datum.deciding", alt.value(2.5), alt.value(1)),
            opacity=focus_opacity(0.8),
        ),
        points.mark_point(size=110, strokeWidth=2).encode(
            x=x,
            y=y,
            color=color,
            shape=shape,
            fill=color.copy(),
            fillOpacity=alt.condition("datum.deciding", alt.value(1), alt.value(0)),
            opacity=focus_opacity(),
            tooltip=[
                alt.Tooltip("name:N", title="Configuration"),
                alt.Tooltip("streams:N", title="Concurrency"),
                alt.Tooltip("speedup:Q", title="Speed-up", format=".3f"),
                alt.Tooltip("interval:N", title="Interval"),
                alt.Tooltip("L:Q", title="Acceptance length", format=".2f"),
                alt.Tooltip("r:Q", title="Step cost ratio", format=".2f"),
                alt.Tooltip("even:Q", title="Breaks even at length", format=".2f"),
                alt.Tooltip("verdict:N", title="Verdict"),
                alt.Tooltip("why:N", title="Why"),
            ],
        ),
    ]

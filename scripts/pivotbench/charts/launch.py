"""Where the time of a launch goes: mean seconds of each phase, a bar a configuration."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import altair as alt

from pivotbench.charts.field import plain_name
from pivotbench.charts.hues import focus_opacity
from pivotbench.charts.layout import MOST_ROWS, WIDTH, Entry, Figures, described, inline, row_height
from pivotbench.charts.theme import LIGHT
from pivotbench.evidence import CellFiles
from pivotbench.figures import percent, seconds

REST = "everything else"


def mean_phases(cells: Iterable[CellFiles]) -> dict[str, dict[str, float]]:
    """Return, by configuration, the mean seconds of each launch phase; what no phase covers is the rest.

    Only launches that became ready count. ``<base>+none`` counts as its base.
    """
    launches: dict[str, list[dict[str, float]]] = {}
    for cell in cells:
        launch = cell.launch
        if launch is None or launch["status"] != "ok" or not launch.get("ready_seconds"):
            continue
        parts: dict[str, float] = {}
        for phase in launch.get("phases") or []:
            name = phase["name"].replace("_", " ")
            parts[name] = parts.get(name, 0.0) + phase["seconds"]
        parts[REST] = max(0.0, launch["ready_seconds"] - sum(parts.values()))
        launches.setdefault(plain_name(cell.configuration), []).append(parts)
    return {
        name: {
            phase: sum(parts.get(phase, 0.0) for parts in each) / len(each)
            for phase in dict.fromkeys(phase for parts in each for phase in parts)
        }
        for name, each in launches.items()
    }


def finding(phases: dict[str, dict[str, float]]) -> str:
    """Return how long launches take and what most of that time is spent on."""
    totals = [sum(parts.values()) for parts in phases.values()]
    low, high = min(totals), max(totals)
    span = short(high) if high < 1.1 * low else f"{short(low)} to {short(high)}"
    spent: dict[str, float] = {}
    for parts in phases.values():
        for phase, value in parts.items():
            spent[phase] = spent.get(phase, 0.0) + value
    top = max(spent, key=lambda phase: spent[phase])
    if top == REST:
        return f"A launch is ready in {span}"
    return f"A launch is ready in {span}, of which “{top}” takes {percent(spent[top] / sum(spent.values()))}"


def short(value: float) -> str:
    """Return seconds with two digits: a launch is not timed more finely than that."""
    return seconds(value, digits=2)


def launch_chart(cells: Iterable[CellFiles]) -> alt.TopLevelMixin | None:
    """Return the breakdown of the slowest launches, or None where none became ready."""
    phases = mean_phases(cells)
    if not phases:
        return None

    def total(name: str) -> float:
        return sum(phases[name].values())

    order = sorted(phases, key=lambda name: -total(name))
    shown = order[:MOST_ROWS]
    largest = largest_phases(phases)
    rows: list[dict[str, Any]] = []
    for name in shown:
        folded: dict[str, float] = {}
        for phase, value in phases[name].items():
            key = phase if phase in largest else REST
            folded[key] = folded.get(key, 0.0) + value
        rows += [
            {"name": name, "phase": phase, "seconds": round(value, 4), "place": place}
            for place, phase in enumerate([*largest, REST])
            if (value := folded.get(phase, 0.0)) > 0
        ]
    totals = [{"name": n, "total": total(n), "note": short(total(n))} for n in shown]
    y = alt.Y("name:N", sort=shown, title=None, axis=alt.Axis(grid=False))
    legend_order = [*largest, REST] if any(row["phase"] == REST for row in rows) else largest
    height = row_height(len(shown))
    chart = alt.layer(
        alt.Chart(inline(rows))
        .mark_bar(height=height * 0.56)
        .encode(
            x=alt.X(
                "seconds:Q", title="Seconds until ready (mean over launches)", axis=alt.Axis(tickCount=6)
            ),
            y=y,
            color=alt.Color(
                "phase:O",
                sort=legend_order,
                scale=alt.Scale(domain=legend_order),
                legend=alt.Legend(title=None, symbolType="square"),
            ),
            order=alt.Order("place:Q"),
            opacity=focus_opacity(dimmed=0.3),
            tooltip=[
                alt.Tooltip("name:N", title="Configuration"),
                alt.Tooltip("phase:N", title="Phase"),
                alt.Tooltip("seconds:Q", title="Seconds", format=".3~f"),
            ],
        ),
        alt.Chart(inline(totals))
        .mark_text(style="label", align="left", dx=7)
        .encode(x=alt.X("total:Q"), y=y, text="note:N", opacity=focus_opacity(dimmed=0.3)),
    ).properties(width=WIDTH, height=height * len(shown))
    caption = "Mean over launches that became ready, by phase as the server's own log times them."
    if len(shown) < len(order):
        caption += f" The slowest {len(shown)} of {len(order)} are shown."
    every = list(dict.fromkeys(phase for parts in phases.values() for phase in parts if phase != REST))
    table = Figures(
        ("Configuration", *every, REST, "ready in"),
        [
            (n, *(short(phases[n][p]) if p in phases[n] else "–" for p in [*every, REST]), short(total(n)))
            for n in order
        ],
    )
    legend = [Entry(phase, f"phases-{i}") for i, phase in enumerate(legend_order, start=1)]
    return described(chart, finding(phases), caption, legend, table)


def largest_phases(phases: dict[str, dict[str, float]]) -> list[str]:
    """Return the phases that have a colour of their own, in the order in which launches go through them."""
    order = list(dict.fromkeys(phase for parts in phases.values() for phase in parts if phase != REST))
    weight = {phase: sum(parts.get(phase, 0.0) for parts in phases.values()) for phase in order}
    heaviest = sorted(order, key=lambda phase: -weight[phase])[: len(LIGHT.phases) - 1]
    return [phase for phase in order if phase in heaviest]

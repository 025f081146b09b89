"""Throughput against latency as concurrency grows, and the line no configuration improves on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from pivotbench.charts.crowd import drawn, note
from pivotbench.charts.field import plain_name
from pivotbench.charts.hues import OTHERS, Hues, focus_opacity
from pivotbench.charts.layout import PANEL_HEIGHT, Figures, described, inline, panel_width
from pivotbench.figures import names, number

Decision = Mapping[str, Any]
UNDECIDED = "undecided who leads"


def operating_points(decision: Decision, measurements: pd.DataFrame) -> pd.DataFrame:
    """Return one row a configuration, workload and concurrency: mean tok_s and latency_ms.

    Latency is the median request's time per output token after the first (TPOT). The base relaunched
    for phase two counts with the base of phase one. Open loops have no concurrency and no place here, nor
    have the eliminated, and runs whose speed does not count (metric.unrankable).
    """
    keys = ["name", "workload", "concurrency"]
    out = {(row["phase"], row["configuration"]) for row in decision["eliminated"]}
    cells = zip(measurements["phase"], measurements["configuration"], strict=True)
    usable = measurements[np.array([cell not in out for cell in cells], dtype=bool)]
    usable = usable[~usable["client_bound"].astype(bool) & usable["unanswered"].isna()]
    usable = usable.dropna(subset=["output_tok_s", "tpot_p50_seconds", "concurrency"])
    usable = usable.assign(name=usable["configuration"].map(plain_name))
    means = usable.groupby(keys, as_index=False)[["output_tok_s", "tpot_p50_seconds"]].mean()
    means["latency_ms"] = means["tpot_p50_seconds"] * 1000
    return means.rename(columns={"output_tok_s": "tok_s"})


def finding(decision: Decision) -> str:
    """Return which configuration is best on each workload and at which load, as far as verdicts say so."""
    by_workload: dict[str, list[Mapping[str, Any]]] = {}
    for row in decision["regions"]["best"]:
        if row["workload"] is not None and row["concurrency"] is not None:
            by_workload.setdefault(row["workload"], []).append(row)
    leads: dict[str, list[str]] = {}
    for workload, rows in by_workload.items():
        leads.setdefault(_lead(rows), []).append(workload)
    if not leads:
        return "Throughput and latency under load"
    if len(leads) == 1 and len(by_workload) > 1:
        found = f"{next(iter(leads))} on every workload"
    else:
        found = "; ".join(f"{lead} on {names(workloads)}" for lead, workloads in leads.items())
    # A configuration's name stays as it is written.
    return found.replace(UNDECIDED, UNDECIDED.capitalize(), 1) if found.startswith(UNDECIDED) else found


def _lead(rows: list[Mapping[str, Any]]) -> str:
    """Who leads one workload, from its loads in rising order; where no verdict says so, nobody is named."""
    words = {"leads": "{} leads", "equivalent": "{} is among the best", "alone": "only {} was measured"}
    said: dict[str, list[str]] = {}
    for row in rows:
        lead = words.get(row["standing"], UNDECIDED).format(row["configuration"])
        said.setdefault(lead, []).append(f"{row['concurrency']:,}")
    if len(said) == 1:
        return next(iter(said))
    if UNDECIDED in said:
        said["undecided"] = said.pop(UNDECIDED)
    return ", ".join(f"{lead} with {names(streams)}" for lead, streams in said.items()) + " streams"


def frontier_chart(decision: Decision, measurements: pd.DataFrame, hues: Hues) -> alt.TopLevelMixin | None:
    """Return the frontier, a panel a workload, or None where no latency was measured."""
    points = operating_points(decision, measurements)
    if points.empty:
        return None
    keys = ("configuration", "workload", "concurrency")
    front = {tuple(row[key] for key in keys) for row in decision["pareto"]}
    every = frozenset(points["name"])
    shown = drawn(decision, hues, every, also=(name for name, _, _ in front))
    rows = [
        {
            "name": row["name"],
            "series": hues.series(row["name"]),
            "workload": row["workload"],
            "streams": row["concurrency"],
            "tok_s": round(row["tok_s"], 3),
            "latency_ms": round(row["latency_ms"], 4),
            "front": (row["name"], row["workload"], row["concurrency"]) in front,
        }
        for row in points[points["name"].isin(shown)].to_dict("records")
    ]
    rows.sort(key=lambda row: row["series"] != OTHERS)  # later ones are drawn over earlier ones
    panels = points["workload"].nunique()
    x = alt.X(
        "latency_ms:Q",
        title="Time per output token, p50 (ms)",
        scale=alt.Scale(zero=False, nice=False, padding=22),
        axis=alt.Axis(tickCount=5),
    )
    y = alt.Y(
        "tok_s:Q",
        title="Output tok/s, all streams",
        scale=alt.Scale(zero=False, nice=False, padding=22),
        axis=alt.Axis(tickCount=6),
    )
    base = alt.Chart().encode(x=x, y=y)
    layers = alt.layer(
        base.transform_filter("datum.front").mark_line(style="front").encode(order=alt.Order("latency_ms:Q")),
        base.mark_line(strokeWidth=2).encode(
            color=hues.color(every),
            detail="name:N",
            order="streams:Q",
            opacity=focus_opacity(0.85, others=0.2),
        ),
        base.mark_point(filled=True, size=80).encode(
            color=hues.color(every),
            opacity=focus_opacity(others=0.35),
            tooltip=[
                alt.Tooltip("name:N", title="Configuration"),
                alt.Tooltip("streams:Q", title="Streams"),
                alt.Tooltip("tok_s:Q", title="Output tok/s", format=".4g"),
                alt.Tooltip("latency_ms:Q", title="ms per token, p50", format=".4g"),
            ],
        ),
        base.transform_filter("datum.front")
        .mark_text(style="note", dx=-8, dy=-7, align="right")
        .encode(text="streams:Q"),
    ).properties(width=panel_width(panels), height=PANEL_HEIGHT)
    chart = layers.facet(
        facet=alt.Facet("workload:N", title=None), data=inline(rows), columns=2
    ).resolve_scale(x="independent", y="independent")
    caption = (
        "Up and to the left is better. Lines join the concurrencies of one configuration; "
        "the wide pale line is the Pareto line: points whose means none beats in both, with their streams."
    )
    caption += note(shown, every, also="those on the Pareto line")
    return described(chart, finding(decision), caption, hues.legend(every), figures(points, front))


def figures(points: pd.DataFrame, front: Collection[tuple[Any, ...]]) -> Figures:
    """Return all operating points as a table."""
    order = points.sort_values(["workload", "concurrency", "tok_s"], ascending=[True, True, False])
    return Figures(
        ("Configuration", "Workload", "Streams", "Output tok/s", "ms per token, p50", "Pareto line"),
        [
            (
                row["name"],
                row["workload"],
                f"{row['concurrency']:,}",
                number(row["tok_s"]),
                number(row["latency_ms"]),
                "yes" if (row["name"], row["workload"], row["concurrency"]) in front else "–",
            )
            for row in order.to_dict("records")
        ],
    )

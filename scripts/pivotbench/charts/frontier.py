"""Throughput against latency as concurrency grows, and the line no configuration improves on."""

from __future__ import annotations

import altair as alt
import pandas as pd

from pivotbench.charts.figures import count, names, tok_s
from pivotbench.charts.hues import OTHERS, Hues, focus_opacity, plain_name
from pivotbench.charts.layout import PANEL_HEIGHT, described, panel_width


def operating_points(measurements: pd.DataFrame) -> pd.DataFrame:
    """Return one row a configuration, workload and concurrency: mean tok_s and latency_ms.

    Latency is the median request's time per output token after the first (TPOT). The base relaunched
    for phase two counts with the base of phase one. Open loops have no concurrency and no place here.
    """
    keys = ["name", "workload", "concurrency"]
    usable = measurements.dropna(subset=["output_tok_s", "tpot_p50_seconds", "concurrency"])
    usable = usable.assign(name=usable["configuration"].map(plain_name))
    means = usable.groupby(keys, as_index=False)[["output_tok_s", "tpot_p50_seconds"]].mean()
    means["latency_ms"] = means["tpot_p50_seconds"] * 1000
    return means.rename(columns={"output_tok_s": "tok_s"})


def pareto(points: pd.DataFrame) -> pd.DataFrame:
    """Return the points of one workload that no other beats in both throughput and latency."""
    ordered = points.sort_values(["latency_ms", "tok_s"], ascending=[True, False])
    return ordered[ordered["tok_s"] > ordered["tok_s"].cummax().shift(fill_value=-1.0)]


def finding(points: pd.DataFrame) -> str:
    """Return which configuration has the highest throughput on each workload, and where the lead changes."""
    leads: dict[str, list[str]] = {}
    for workload, group in points.groupby("workload"):
        best = group.sort_values(["concurrency", "tok_s"]).groupby("concurrency").tail(1).to_dict("records")
        alone, loaded = best[0], best[-1]
        if alone["name"] == loaded["name"]:
            leads.setdefault(f"{alone['name']} leads", []).append(str(workload))
        else:
            streams = count(int(loaded["concurrency"]), "stream")
            change = f"{alone['name']} leads alone and {loaded['name']} with {streams}"
            leads.setdefault(change, []).append(str(workload))
    top = points.sort_values("tok_s").to_dict("records")[-1]
    if len(leads) == 1:
        reach = f"up to {tok_s(top['tok_s'])} with {count(int(top['concurrency']), 'stream')}"
        return f"{next(iter(leads))} on every workload, {reach}"
    return "; ".join(f"{lead} on {names(workloads)}" for lead, workloads in leads.items())


def frontier_chart(measurements: pd.DataFrame, hues: Hues) -> alt.TopLevelMixin | None:
    """Return the frontier, a panel a workload, or None where no latency was measured."""
    points = operating_points(measurements)
    if points.empty:
        return None
    fronts = [pareto(group).index for _, group in points.groupby("workload")]
    on_front = {place for front in fronts for place in front}
    rows = [
        {
            "name": row["name"],
            "series": hues.series(row["name"]),
            "workload": row["workload"],
            "streams": row["concurrency"],
            "tok_s": round(row["tok_s"], 3),
            "latency_ms": round(row["latency_ms"], 4),
            "front": place in on_front,
        }
        for place, row in zip(points.index, points.to_dict("records"), strict=True)
    ]
    rows.sort(key=lambda row: row["series"] != OTHERS)  # later ones are drawn over earlier ones
    panels = points["workload"].nunique()
    x = alt.X(
        "latency_ms:Q", title="Time per output token, p50 (ms)", scale=alt.Scale(zero=False, padding=18)
    )
    y = alt.Y("tok_s:Q", title="Output tok/s, all streams", scale=alt.Scale(zero=False, padding=18))
    base = alt.Chart().encode(x=x, y=y)
    layers = alt.layer(
        base.transform_filter("datum.front")
        .mark_line(style="guide", strokeDash=[2, 4])
        .encode(order=alt.Order("latency_ms:Q")),
        base.mark_line(strokeWidth=2).encode(
            color=hues.color(points["name"]),
            detail="name:N",
            order="streams:Q",
            opacity=focus_opacity(0.85, others=0.2),
        ),
        base.mark_point(filled=True, size=80).encode(
            color=hues.color(points["name"]),
            opacity=focus_opacity(others=0.35),
            tooltip=[
                alt.Tooltip("name:N", title="Configuration"),
                alt.Tooltip("streams:Q", title="Streams"),
                alt.Tooltip("tok_s:Q", title="Output tok/s", format=".4g"),
                alt.Tooltip("latency_ms:Q", title="ms per token, p50", format=".4g"),
            ],
        ),
        base.transform_filter("datum.front")
        .mark_text(style="note", dy=-12, align="center")
        .encode(text="streams:Q"),
    ).properties(width=panel_width(panels), height=PANEL_HEIGHT)
    chart = layers.facet(
        facet=alt.Facet("workload:N", title=None), data=alt.InlineData(values=rows), columns=2
    ).resolve_scale(x="independent", y="independent")
    caption = (
        "Up and to the left is better. Lines join the concurrencies of one configuration; "
        "the dotted line joins points that none beats in both, labelled with their number of streams."
    )
    return described(chart, finding(points), caption, hues.legend(points["name"]))

"""How the speed of each configuration changed between two folders of results, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from pivotbench.charts.field import plain_name
from pivotbench.charts.hues import OTHERS, Hues, focus_opacity
from pivotbench.charts.layout import (
    MOST_ROWS,
    PANEL_HEIGHT,
    WIDTH,
    described,
    panel_width,
    row_height,
)
from pivotbench.charts.reach import Reach
from pivotbench.charts.theme import LIGHT
from pivotbench.figures import count, names, number, percent, percent_interval

Row = Mapping[str, Any]


def change_charts(comparison: Row) -> dict[str, alt.TopLevelMixin]:
    """Return the charts of compare.json by name; one that has nothing to show is left out."""
    hues = change_hues(comparison)
    found = {
        "changes": changes_chart(comparison, hues),
        "changes-by-load": changes_by_load_chart(comparison, hues),
    }
    return {name: chart for name, chart in found.items() if chart is not None}


def change_hues(comparison: Row) -> Hues:
    """Give colours to the winners, then to those that changed most."""
    winners = [
        plain_name(name) for name in (comparison["winner"]["new"], comparison["winner"]["old"]) if name
    ]
    moved = [plain_name(row["configuration"]) for row in _moved_most(comparison["speeds"])]
    ranked = {plain_name(row["configuration"]) for row in comparison["speeds"]}
    order = dict.fromkeys([*(name for name in winners if name in ranked), *moved])
    return Hues(tuple(order)[: len(LIGHT.hues)])


def changes_finding(comparison: Row) -> str:
    """Return who became faster or slower, who stayed and of whom that is not known."""
    rows, margin = comparison["speeds"], percent(comparison["metric"]["margin"])
    by = {
        verdict: [row for row in rows if row["verdict"] == verdict]
        for verdict in ("slower", "faster", "equivalent")
    }
    open_ = [row["configuration"] for row in rows if row["verdict"] == "undecided"]
    for verdict in ("faster", "slower"):
        if len(by[verdict]) == len(rows) > 1:
            ends = sorted(abs(row["ratio"] - 1) for row in rows)
            return f"All {len(rows)} became {verdict}, by {percent(ends[0])} to {percent(ends[-1])}"
    if len(by["equivalent"]) == len(rows) > 1:
        return f"All {len(rows)} are as fast as before, within {margin}"
    if len(open_) == len(rows) > 1:
        return f"Undecided of all {len(rows)} whether their speed has changed"
    parts = [
        f"{_gains(by[verdict])} {'is' if len(by[verdict]) == 1 else 'are'} {verdict}"
        for verdict in ("slower", "faster")
        if by[verdict]
    ]
    if by["equivalent"]:
        stayed = names([row["configuration"] for row in by["equivalent"]], 2)
        parts.append(f"{stayed} stayed within {margin}")
    if open_:
        parts.append(f"undecided of {names(open_, 2)}")
    if not parts:
        return "Nothing can be compared: other work was sent"
    found = "; ".join(parts)
    return found.replace("undecided", "Undecided", 1) if found.startswith("undecided of") else found


def changes_chart(comparison: Row, hues: Hues) -> alt.TopLevelMixin | None:
    """Return every configuration's change on the metric, or None where nothing is in both folders."""
    rows = comparison["speeds"]
    if not rows:
        return None
    kept = {id(row) for row in _moved_most(rows)[:MOST_ROWS]}
    shown = sorted((row for row in rows if id(row) in kept), key=lambda row: -row["ratio"])
    order = [row["configuration"] for row in shown]
    margin = comparison["metric"]["margin"]
    band = _band(margin)
    reach = _reach(shown, band)
    points = [
        {**_point(row, hues, reach), "note": _note(row), "figure": percent(row["ratio"] - 1, signed=True)}
        for row in shown
    ]
    for point in points:
        point["end"] = max(v for v in (point["change"], point["high"]) if v is not None)
    low, high = reach.low, reach.high
    room = high - low
    x = alt.X(
        "change:Q",
        title="Output tok/s, new against old",
        scale=alt.Scale(domain=[low - 0.06 * room, high + 0.55 * room], nice=False),
        axis=_change_axis(6),
    )
    y = alt.Y("configuration:N", sort=order, title=None, axis=alt.Axis(grid=False))
    base = alt.Chart(alt.InlineData(values=points))
    chart = alt.layer(
        alt.Chart(alt.InlineData(values=[band]))
        .mark_rect(style="band")
        .encode(x=alt.X("low:Q"), x2="high:Q"),
        alt.Chart(alt.InlineData(values=[{"zero": 0}])).mark_rule(style="guide").encode(x=alt.X("zero:Q")),
        base.mark_rule(style="interval").encode(
            x=alt.X("low:Q"), x2="high:Q", y=y, color=hues.color(), opacity=focus_opacity()
        ),
        base.mark_point(filled=True, size=95, opacity=1).encode(
            x=x, y=y, color=hues.color(), opacity=focus_opacity(), tooltip=_tooltip()
        ),
        base.transform_calculate(words="narrow ? datum.figure : datum.note")
        .mark_text(style="label", align="left", dx=12)
        .encode(x=alt.X("end:Q"), y=y, text="words:N", opacity=focus_opacity()),
    ).properties(width=WIDTH, height=row_height(len(points)) * len(points))
    caption = (
        "Each configuration against itself in the old folder, with the interval of its verdict "
        f"({percent(comparison['metric']['confidence'])} for all together). Right of the line: faster. "
        f"Shaded: within {percent(margin)}, which counts as equal.{reach.note}"
    )
    if len(shown) < len(rows):
        caption += f" The {MOST_ROWS} of {len(rows)} that changed most are shown."
    return described(chart, changes_finding(comparison), caption)


def by_load_finding(comparison: Row) -> str:
    """Return how the winner changed over the loads; of a winner that is not in both folders, how all did."""
    rows, winner = comparison["speeds_by_load"], comparison["winner"]["new"]
    own = [row for row in rows if row["configuration"] == winner]
    own = own or [row for row in rows if row["configuration"] == f"{winner}+none"]
    verdicts = [row["verdict"].replace("_", " ") for row in own or rows]
    where = "loads" if own else "pairs of configuration and load"
    who = f"{winner}: " if own else ""
    if len(set(verdicts)) == 1:
        return f"{who}{verdicts[0]} at all {len(verdicts)} {where}"
    said = [f"{verdict} at {verdicts.count(verdict)}" for verdict in dict.fromkeys(verdicts)]
    return f"{who}{names(said, 5)} of {len(verdicts)} {where}"


def changes_by_load_chart(comparison: Row, hues: Hues) -> alt.TopLevelMixin | None:
    """Return the change at each load, a panel a workload, or None where fewer than two loads are in both."""
    rows = comparison["speeds_by_load"]
    if len({(row["workload"], row["concurrency"]) for row in rows}) < 2:
        return None
    colored = [row for row in rows if hues.series(row["configuration"]) != OTHERS]
    band = _band(comparison["metric"]["margin"])
    reach = _reach(colored, band)
    points = [
        {**_point(row, hues, reach), "workload": row["workload"], "streams": row["concurrency"]}
        for row in colored
    ]
    order = [name for name in hues.named if any(point["name"] == name for point in points)]
    x = alt.X("streams:O", title="Streams", axis=alt.Axis(labelAngle=0, grid=False))
    offset = alt.XOffset("configuration:N", scale=alt.Scale(paddingOuter=0.4))
    base = alt.Chart().encode(x=x, xOffset=offset, color=hues.color(order), opacity=focus_opacity())
    layers = alt.layer(
        alt.Chart().mark_rect(style="band").encode(y=alt.YDatum(band["low"]), y2=alt.Y2Datum(band["high"])),
        alt.Chart().mark_rule(style="guide").encode(y=alt.YDatum(0)),
        base.mark_rule(style="interval").encode(y=alt.Y("low:Q"), y2="high:Q"),
        base.mark_point(filled=True, size=70).encode(
            y=alt.Y(
                "change:Q",
                title="Output tok/s, new against old",
                axis=_change_axis(6),
            ),
            tooltip=[alt.Tooltip("streams:O", title="Streams"), *_tooltip()],
        ),
    ).properties(width=panel_width(len({p["workload"] for p in points})), height=PANEL_HEIGHT)
    chart = layers.facet(
        facet=alt.Facet("workload:N", title=None), data=alt.InlineData(values=points), columns=2
    )
    caption = (
        "As above, by workload and concurrency; these verdicts hold together among themselves. "
        f"Shaded: within {percent(comparison['metric']['margin'])}.{reach.note}"
    )
    if hidden := len({plain_name(row["configuration"]) for row in rows} - set(order)):
        caption += f" {count(hidden, 'configuration')} more stand in the table."
    return described(chart, by_load_finding(comparison), caption, hues.legend(order))


def _moved_most(rows: Sequence[Row]) -> list[Row]:
    """The rows, those first that may be compared, and of these the greatest change."""
    return sorted(rows, key=lambda row: (row["verdict"] == "not_comparable", -abs(row["ratio"] - 1)))


def _reach(rows: Sequence[Row], band: Mapping[str, float]) -> Reach:
    return Reach.of([*band.values(), *(row["ratio"] - 1 for row in rows)], map(_ends, rows))


def _ends(row: Row) -> tuple[float, float] | None:
    """The interval of a row's change."""
    return (row["ci"][0] - 1, row["ci"][1] - 1) if row["ci"] else None


def _point(row: Row, hues: Hues, reach: Reach) -> dict[str, Any]:
    low, high = reach.within(_ends(row))
    return {
        "name": plain_name(row["configuration"]),
        "configuration": row["configuration"],
        "series": hues.series(row["configuration"]),
        "change": row["ratio"] - 1,
        "low": low,
        "high": high,
        "was": row["old_tok_s"],
        "now": row["new_tok_s"],
        "interval": percent_interval(row["ci"]) if row["ci"] else "none",
        "verdict": row["verdict"].replace("_", " "),
    }


def _note(row: Row) -> str:
    levels = f"{number(row['old_tok_s'])} → {number(row['new_tok_s'])}"
    return f"{levels}  ·  {_change(row)}"


def _change(row: Row) -> str:
    verdict = str(row["verdict"]).replace("_", " ")
    if row["verdict"] in ("faster", "slower"):
        return f"{percent(row['ratio'] - 1, signed=True)}, {verdict}"
    return verdict


def _gains(rows: Sequence[Row]) -> str:
    changes = [
        f"{row['configuration']} ({percent(row['ratio'] - 1, signed=True)})" for row in _moved_most(rows)
    ]
    return names(changes, 2)


def _band(margin: float) -> dict[str, float]:
    return {"low": 1 / (1 + margin) - 1, "high": margin}


def _change_axis(ticks: int) -> alt.Axis:
    same = "datum.value === 0 ? 'as before' : datum.label"
    return alt.Axis(format="+.0%", tickCount=ticks, labelExpr=same)


def _tooltip() -> list[alt.Tooltip]:
    return [
        alt.Tooltip("configuration:N", title="Configuration"),
        alt.Tooltip("was:Q", title="Old, tok/s", format=".4g"),
        alt.Tooltip("now:Q", title="New, tok/s", format=".4g"),
        alt.Tooltip("change:Q", title="Change", format="+.1%"),
        alt.Tooltip("interval:N", title="Interval"),
        alt.Tooltip("verdict:N", title="Verdict"),
    ]

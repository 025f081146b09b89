"""Charts as files: interactive HTML without any address in it, SVG for slides, PNG for everything else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from pivotbench.charts.layout import WIDTH
from pivotbench.charts.page import chart_page
from pivotbench.charts.theme import LIGHT, config
from pivotbench.files import write_bytes, write_text

PNG_SCALE = 2
LEGEND_PIXELS_PER_LETTER = 7
LEGEND_SYMBOL_PIXELS = 40


def write_charts(charts: Mapping[str, alt.TopLevelMixin], folder: Path) -> None:
    """Write ``<name>.html``, ``.svg`` and ``.png`` of each chart into ``folder``; pictures are on white.

    Files of charts that no longer exist are removed.
    """
    for name, chart in charts.items():
        spec = chart.to_dict()
        look = {**config(LIGHT), "background": LIGHT.background, "padding": 20}
        look["legend"] = {**look["legend"], "columns": legend_columns(spec["usermeta"]["legend"])}
        write_text(folder / f"{name}.html", chart_page(name, spec))
        write_text(folder / f"{name}.svg", vl_convert.vegalite_to_svg(spec, config=look))
        write_bytes(folder / f"{name}.png", vl_convert.vegalite_to_png(spec, config=look, scale=PNG_SCALE))
    for stale in folder.glob("*.*"):
        if stale.suffix in (".html", ".svg", ".png") and stale.stem not in charts:
            stale.unlink()


def legend_columns(entries: list[dict[str, Any]]) -> int:
    """Return how many columns of a legend fit under a chart."""
    longest = max((len(entry["label"]) for entry in entries), default=0)
    return max(1, WIDTH // (LEGEND_PIXELS_PER_LETTER * longest + LEGEND_SYMBOL_PIXELS))

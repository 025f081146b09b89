"""Charts as files: interactive HTML without any address in it, SVG for slides, PNG for everything else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert
from markupsafe import escape

from pivotbench.charts.layout import WIDTH
from pivotbench.charts.page import chart_page
from pivotbench.charts.theme import EXPORT_FONT, LIGHT, config
from pivotbench.files import write_bytes, write_text

PNG_SCALE = 2
LEGEND_PIXELS_PER_LETTER = 7
LEGEND_SYMBOL_PIXELS = 40
PADDING = 20
SOURCE_FONT_PIXELS = 11
SOURCE_HEIGHT = 18
OPACITY = re.compile(r'<path [^>]* opacity="[^>]*>')
SIZE = re.compile(r'width="(?P<width>[\d.]+)" height="(?P<height>[\d.]+)" viewBox="[^"]*">')


def write_charts(charts: Mapping[str, alt.TopLevelMixin], folder: Path, source: str) -> None:
    """Write ``<name>.html``, ``.svg`` and ``.png`` of each chart into ``folder``; pictures are on white.

    ``source``: the line under each of them, see source_line. Files of charts that no longer
    exist are removed.
    """
    for name, chart in charts.items():
        spec = chart.to_dict(validate=False)
        look = {**config(LIGHT), "background": LIGHT.background, "padding": PADDING}
        look["legend"] = {**look["legend"], "columns": legend_columns(spec["usermeta"]["legend"])}
        svg = with_source(plain_opacity(vl_convert.vegalite_to_svg(spec, config=look)), source)
        write_text(folder / f"{name}.html", chart_page(name, spec, source))
        write_text(folder / f"{name}.svg", svg)
        write_bytes(folder / f"{name}.png", vl_convert.svg_to_png(svg, scale=PNG_SCALE))
    for stale in folder.glob("*.*"):
        if stale.suffix in (".html", ".svg", ".png") and stale.stem not in charts:
            stale.unlink()


def plain_opacity(svg: str) -> str:
    """Return the same picture in which a path that is only filled, or only drawn, has no opacity as a whole.

    For that a renderer paints every path on a sheet of its own: a thousand lines cost it seconds.
    """

    def plain(path: re.Match[str]) -> str:
        tag = path[0]
        paints = [p for p in ("fill", "stroke") if re.search(rf' {p}="(?!none|transparent)', tag)]
        if len(paints) != 1 or f" {paints[0]}-opacity=" in tag:
            return tag
        return tag.replace(' opacity="', f' {paints[0]}-opacity="')

    return OPACITY.sub(plain, svg)


def with_source(svg: str, source: str) -> str:
    """Return a picture that vl-convert drew with one line of text more under it."""
    size = SIZE.search(svg)
    if size is None:
        raise ValueError("a picture without a size")
    width, height = float(size["width"]), float(size["height"])
    line = (
        f'<text x="{PADDING}" y="{height + 2}" font-family="{EXPORT_FONT}" font-size="{SOURCE_FONT_PIXELS}" '
        f'fill="{LIGHT.muted}">{escape(source)}</text>'
    )
    ground = f'<rect width="{width:g}" height="{height + SOURCE_HEIGHT:g}" fill="{LIGHT.background}"/>'
    tall = (
        f'width="{width:g}" height="{height + SOURCE_HEIGHT:g}" '
        f'viewBox="0 0 {width:g} {height + SOURCE_HEIGHT:g}">'
    )
    body = svg[size.end() :].removesuffix("</svg>")
    return f"{svg[: size.start()]}{tall}{ground}{body}{line}</svg>"


def legend_columns(entries: list[dict[str, Any]]) -> int:
    """Return how many columns of a legend fit under a chart."""
    longest = max((len(entry["label"]) for entry in entries), default=0)
    return max(1, WIDTH // (LEGEND_PIXELS_PER_LETTER * longest + LEGEND_SYMBOL_PIXELS))

"""One look for all charts, as a Vega configuration: fixed colours for files, CSS variables for pages.

A page sets the variables for light, dark and print, and the charts in it follow without being redrawn.

Colours follow Okabe and Ito (2008), "Color Universal Design", each darkened or lightened until it reaches
a contrast of 3:1 against its background (WCAG 2.2, 1.4.11). Marks name a *style* ("band", "guide", ...)
and take their neutral colours from here, so that the same chart fits both schemes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

# vl-convert ships Liberation Sans and draws no text at all where no name in the list is known to it.
EXPORT_FONT = "Helvetica, Arial, sans-serif"
SCREEN_FONT = 'Inter, "Segoe UI", system-ui, -apple-system, "Helvetica Neue", Arial, sans-serif'


@dataclass(frozen=True)
class Ink:
    """The colours of one scheme; ``hues`` are for configurations, ``phases`` for parts of a launch."""

    background: str
    text: str
    muted: str
    grid: str
    band: str
    front: str
    guide: str
    other: str
    hues: tuple[str, ...]
    phases: tuple[str, ...]


LIGHT = Ink(
    background="#ffffff",
    text="#1b1f24",
    muted="#57606a",
    grid="#e6e8eb",
    band="#e3edf6",
    front="#dde1e6",
    guide="#8c959f",
    other="#9aa3ad",
    hues=("#0072b2", "#d55e00", "#00875f", "#b8568f", "#a87400", "#3490cf", "#30343a"),
    phases=("#1d4e79", "#3f7fb5", "#85b4da", "#b9a56a", "#8f7a3a", "#c9ced4"),
)
DARK = Ink(
    background="#14181d",
    text="#e8ebee",
    muted="#a3adb8",
    grid="#2a3038",
    band="#1d2d3d",
    front="#39424d",
    guide="#77828e",
    other="#6d7883",
    hues=("#58b4ea", "#ff8d4d", "#2fc592", "#e69ac6", "#eab035", "#8fb8ff", "#dfe3e8"),
    phases=("#8cc4f0", "#5498cf", "#2f6b9e", "#d8c27c", "#a08a45", "#4a535d"),
)


def variables(ink: Ink) -> Iterator[tuple[str, str]]:
    """Yield the CSS variables of a scheme as (name, colour)."""
    for field in fields(ink):
        value = getattr(ink, field.name)
        if isinstance(value, str):
            yield f"--chart-{field.name}", value
        else:
            yield from ((f"--{field.name}-{place}", colour) for place, colour in enumerate(value, start=1))


def by_variables() -> Ink:
    """Return the ink whose colours a page's CSS variables decide."""

    def many(kind: str, quantity: int) -> tuple[str, ...]:
        return tuple(f"var(--{kind}-{place})" for place in range(1, quantity + 1))

    plain = {f.name: f"var(--chart-{f.name})" for f in fields(Ink) if f.name not in ("hues", "phases")}
    return Ink(**plain, hues=many("hues", len(LIGHT.hues)), phases=many("phases", len(LIGHT.phases)))


def config(ink: Ink, font: str = EXPORT_FONT) -> dict[str, Any]:
    """Return the Vega-Lite configuration in the colours of ``ink``; the background is transparent."""
    label = {"labelColor": ink.muted, "labelFontSize": 11.5, "labelFont": font}
    title = {"titleColor": ink.muted, "titleFontSize": 11.5, "titleFontWeight": 500, "titleFont": font}
    return {
        "background": "transparent",
        "font": font,
        "padding": 4,
        "view": {"stroke": None},
        "range": {"category": [ink.other, *ink.hues], "ordinal": list(ink.phases)},
        "axis": {
            **label,
            **title,
            "gridColor": ink.grid,
            "domain": False,
            "ticks": False,
            "labelPadding": 8,
            "labelFlush": False,
            "labelLimit": 230,
            "titlePadding": 12,
        },
        "header": {
            "labelColor": ink.text,
            "labelFontSize": 13,
            "labelFontWeight": 600,
            "labelFont": font,
            "labelAnchor": "start",
            "labelPadding": 10,
            "title": None,
        },
        "legend": {
            **label,
            **title,
            "labelColor": ink.text,
            "orient": "bottom",
            "direction": "horizontal",
            "symbolOpacity": 1,
            "symbolBaseFillColor": ink.muted,
            "symbolBaseStrokeColor": ink.muted,
            "symbolSize": 90,
            "symbolStrokeWidth": 2,
            "columnPadding": 18,
            "labelLimit": 260,
            "offset": 18,
        },
        "title": {
            "color": ink.text,
            "font": font,
            "fontSize": 17,
            "fontWeight": 600,
            "lineHeight": 22,
            "anchor": "start",
            "frame": "bounds",
            "offset": 18,
            "subtitleColor": ink.muted,
            "subtitleFont": font,
            "subtitleFontSize": 12.5,
            "subtitleLineHeight": 17,
            "subtitlePadding": 7,
        },
        "facet": {"spacing": 36},
        "text": {"color": ink.text, "fontSize": 11.5, "font": font},
        "style": {
            "band": {"color": ink.band, "opacity": 1},
            "guide": {"color": ink.guide, "strokeWidth": 1.25},
            "front": {"color": ink.front, "strokeWidth": 9, "strokeCap": "round", "strokeJoin": "round"},
            "ray": {"color": ink.grid, "strokeWidth": 1.25},
            "note": {"color": ink.muted, "fontSize": 11, "font": font},
            "label": {"color": ink.text, "fontSize": 11.5, "font": font},
            "interval": {"strokeWidth": 2, "strokeCap": "round"},
        },
    }

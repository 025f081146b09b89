"""Size, title and caption: what every chart is given in the same way."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import altair as alt

WIDTH = 680
PANEL_HEIGHT = 280
PANEL_GAP = 36
# More rows than this are not legible on a slide; tables have them all.
MOST_ROWS = 40


def inline(rows: Iterable[Mapping[str, Any]]) -> alt.InlineData:
    """Return rows as a chart's data. They stand in a tuple: Altair copies lists whenever it joins charts."""
    import altair as alt

    return alt.InlineData(values=tuple(rows))


def row_height(rows: int) -> int:
    """Return the height in pixels of one row of a chart that has ``rows`` of them."""
    return 34 if rows <= 12 else 24 if rows <= 30 else 15


def panel_width(panels: int) -> int:
    """Return the width in pixels of one of ``panels`` side by side, two a row at most."""
    return WIDTH if panels <= 1 else (WIDTH - PANEL_GAP) // 2 - 24


@dataclass(frozen=True)
class Entry:
    """One line of a legend: its words, and the CSS variable of its colour or the shape of its point."""

    label: str
    variable: str = "chart-muted"
    shape: str = "dot"
    hollow: bool = False


@dataclass(frozen=True)
class Figures:
    """What a chart shows as a table, for those who hear it or want the figures: a configuration a row."""

    headings: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


def described(
    chart: alt.LayerChart | alt.FacetChart,
    finding: str,
    caption: str,
    legend: Sequence[Entry] = (),
    table: Figures = Figures(),
) -> alt.TopLevelMixin:
    """Return the chart with its finding as title and its caption, and two parameters for pages.

    ``focus`` names the configuration to bring out, in all charts of a page at once; ``narrow`` says that
    there is no room for words beside points. Finding, caption, legend and table are also in ``usermeta``,
    for pages that set them in their own type.
    """
    import altair as alt

    titled = chart.properties(
        title=alt.TitleParams(text=textwrap.wrap(finding, 76), subtitle=textwrap.wrap(caption, 108)),
        description=f"{finding}. {caption}",
    )
    told = titled.add_params(alt.param(name="focus", value=""), alt.param(name="narrow", value=False))
    # Set at the end: as a property Altair would copy and check all rows of the table.
    told.usermeta = {
        "finding": finding,
        "caption": caption,
        "legend": [asdict(entry) for entry in legend],
        "table": {"headings": table.headings, "rows": table.rows},
    }
    return told

"""All charts of one decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd
from altair.utils.schemapi import debug_mode

from pivotbench.charts.energy import energy_chart
from pivotbench.charts.field import fields
from pivotbench.charts.frontier import frontier_chart
from pivotbench.charts.hardware import hardware_chart
from pivotbench.charts.hues import Hues
from pivotbench.charts.launch import launch_chart
from pivotbench.charts.question import Question
from pivotbench.charts.ranking import ranking_chart
from pivotbench.charts.speculation import speculation_chart
from pivotbench.charts.stability import stability_chart
from pivotbench.evidence import CellFiles


def build_charts(
    decision: Mapping[str, Any], measurements: pd.DataFrame, cells: Sequence[CellFiles]
) -> dict[str, alt.TopLevelMixin]:
    """Return the charts by name, in reading order; a chart that has nothing to show is left out."""
    with debug_mode(False):  # Altair would check all rows of each part, and again of the whole
        drawn = _draw(decision, measurements, cells)
    return {name: chart for name, chart in drawn.items() if chart is not None}


def _draw(
    decision: Mapping[str, Any], measurements: pd.DataFrame, cells: Sequence[CellFiles]
) -> dict[str, alt.TopLevelMixin | None]:
    hues = Hues.of(decision)
    question = Question.of(decision)
    drawn: dict[str, alt.TopLevelMixin | None] = {
        "ranking" if phase == "backends" else f"ranking-{phase}": ranking_chart(field, question, hues)
        for phase, field in fields(decision).items()
    }
    drawn |= {
        "frontier": frontier_chart(decision, measurements, hues),
        "speculation": speculation_chart(decision, hues),
        "stability": stability_chart(decision, measurements, cells, hues),
        "hardware": hardware_chart(decision, cells, hues),
        "launch": launch_chart(cells),
        "energy": energy_chart(decision, measurements, hues),
    }
    return drawn

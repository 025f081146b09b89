"""report.html: everything above put on one page that can be sent as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup

from pivotbench import __version__
from pivotbench.charts import build_charts
from pivotbench.charts.figures import number, percent, times
from pivotbench.charts.hues import plain_name
from pivotbench.charts.page import figure_spec, security_policy, templates, text_of, vega
from pivotbench.charts.ranking import fields
from pivotbench.charts.source import measured_on
from pivotbench.decision.loads.arrivals import CAPTION
from pivotbench.decision.loads.words import PARETO_CAPTION
from pivotbench.evidence import CellFiles
from pivotbench.files import write_text
from pivotbench.report.answers import answer_tables
from pivotbench.report.arrivals import arrivals_groups
from pivotbench.report.counted import counted_notes
from pivotbench.report.hardware import hardware_table
from pivotbench.report.loads import pareto_rows, regions_table
from pivotbench.report.outcomes import outcomes, tally
from pivotbench.report.story import facts, story
from pivotbench.report.tables import environment_rows, flag_rows, ranking_rows, speculation_tables
from pivotbench.results import STAGES
from pivotbench.summary.limit import limit_sentence

PHASE_TITLES = {"backends": "Backends", "speculative": "Speculation on the winner"}


def render(
    decision: Mapping[str, Any],
    measurements: pd.DataFrame,
    cells: Sequence[CellFiles],
    altered: Sequence[str] = (),
) -> str:
    """Return the report. Nothing that a model or a server wrote is ever run: text stays text.

    ``altered``: a line for each raw file that is not the one its stage wrote.
    """
    charts = {name: chart.to_dict() for name, chart in build_charts(decision, measurements, cells).items()}
    scripts = {
        "vega": vega(),
        "behaviour": text_of("charts.js"),
        "copying": text_of("copy.js"),
        "scheme": text_of("scheme.js"),
    }
    matrix = outcomes(decision, cells)
    template = templates().get_template("report.html.j2")
    return template.render(
        decision=decision,
        story=story(decision),
        facts=facts(decision),
        charts={name: (spec["usermeta"], figure_spec(spec)) for name, spec in charts.items()},
        stages=STAGES,
        phase_titles=PHASE_TITLES,
        outcomes=matrix,
        tally=tally(matrix),
        answers=answer_tables(decision),
        rankings={
            phase: ranking_rows(field, decision["metric"]) for phase, field in fields(decision).items()
        },
        speculation=speculation_tables(decision),
        regions=regions_table(decision),
        pareto=pareto_rows(decision),
        pareto_caption=PARETO_CAPTION,
        arrivals=arrivals_groups(decision),
        arrivals_caption=CAPTION,
        counted=counted_notes(cells),
        plain_name=plain_name,
        names=configurations(decision, cells),
        limit_sentence=limit_sentence,
        flags=flag_rows(decision, cells),
        hardware=hardware_table(decision["metric"], cells),
        environment=environment_rows(decision["environment"]),
        measured=measured_on(cells),
        altered=altered,
        version=__version__,
        number=number,
        percent=percent,
        times=times,
        policy=security_policy(*scripts.values()),
        base_css=Markup(text_of("base.css")),
        tables_css=Markup(text_of("tables.css")),
        report_css=Markup(text_of("report.css")),
        **{name: Markup(text) for name, text in scripts.items()},
    )


def configurations(decision: Mapping[str, Any], cells: Sequence[CellFiles]) -> list[str]:
    """Return the names under which configurations stand in charts and tables, the ranked ones first."""
    ranked = [row["configuration"] for row in decision["ranking"]]
    return list(dict.fromkeys(map(plain_name, [*ranked, *(cell.configuration for cell in cells)])))


def write_report(
    path: Path,
    decision: Mapping[str, Any],
    measurements: pd.DataFrame,
    cells: Sequence[CellFiles],
    altered: Sequence[str] = (),
) -> None:
    """Write the report whole or not at all; see render."""
    write_text(path, render(decision, measurements, cells, altered))

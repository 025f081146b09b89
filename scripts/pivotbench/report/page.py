"""report.html: everything above put on one page that can be sent as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pivotbench.charts.field import fields, plain_name
from pivotbench.charts.source import measured_on
from pivotbench.charts.spec import Spec
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
from pivotbench.report.shell import page
from pivotbench.report.story import facts, story
from pivotbench.report.tables import environment_rows, flag_rows, ranking_rows, speculation_tables
from pivotbench.results import STAGES
from pivotbench.summary.limit import limit_sentence

PARTS = (
    (
        ("outcomes", "Outcomes"),
        ("ranking", "Ranking"),
        ("frontier", "Load"),
        ("speculation", "Speculation"),
    ),
    (
        ("answers", "Answers"),
        ("stability", "Stability"),
        ("launch", "Launch"),
        ("energy", "Energy"),
        ("limit", "Limit"),
        ("flags", "Flags"),
    ),
    (
        ("levers", "Next levers"),
        ("hypotheses", "Hypotheses"),
        ("threats", "Threats"),
        ("environment", "Environment"),
        ("log", "Decision log"),
    ),
)
MADE_OF = (
    "from servers it started, checked and stopped. Every sample is in `measurements.csv` and "
    "`measurements.parquet`, every request and every reading of the hardware in `requests.parquet` and "
    "`telemetry.parquet` of its round."
)


def render(
    decision: Mapping[str, Any],
    charts: Mapping[str, Spec],
    cells: Sequence[CellFiles],
    altered: Sequence[str] = (),
) -> str:
    """Return the report as a page of its own; see shell.page.

    ``charts``: the specifications by name. ``altered``: a line for each raw file that is not the one its
    stage wrote.
    """
    matrix = outcomes(decision, cells)
    engine = " ".join(filter(None, (decision["engine"], decision["environment"].get("engine_version"))))
    return page(
        story=story(decision),
        facts=facts(decision),
        subject=(decision["study"], decision["model"], engine, measured_on(cells)),
        command=decision["launch_command"],
        sections="sections",
        parts=PARTS,
        charts=charts,
        names=configurations(decision, cells),
        elsewhere="they also lie as pictures in charts/",
        made_of=MADE_OF,
        altered=altered,
        decision=decision,
        stages=STAGES,
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
        limit_sentence=limit_sentence,
        flags=flag_rows(decision, cells),
        hardware=hardware_table(decision["metric"], cells),
        environment=environment_rows(decision["environment"]),
    )


def configurations(decision: Mapping[str, Any], cells: Sequence[CellFiles]) -> list[str]:
    """Return the names under which configurations stand in charts and tables, the ranked ones first."""
    ranked = [row["configuration"] for row in decision["ranking"]]
    return list(dict.fromkeys(map(plain_name, [*ranked, *(cell.configuration for cell in cells)])))


def write_report(
    path: Path,
    decision: Mapping[str, Any],
    charts: Mapping[str, Spec],
    cells: Sequence[CellFiles],
    altered: Sequence[str] = (),
) -> None:
    """Write the report whole or not at all; see render."""
    write_text(path, render(decision, charts, cells, altered))

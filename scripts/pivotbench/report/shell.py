"""The shell of every page that is sent around: what stands on top, contents, sections, scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from pivotbench import __version__
from pivotbench.charts.field import plain_name
from pivotbench.charts.page import security_policy, templates, text_of, vega
from pivotbench.charts.spec import Spec, figure_spec
from pivotbench.figures import number, percent, times
from pivotbench.report.story import Fact, Story

PHASE_TITLES = {"backends": "Backends", "speculative": "Speculation on the winner"}
Contents = Sequence[Sequence[tuple[str, str]]]


def page(
    *,
    story: Story,
    facts: Sequence[Fact],
    subject: Sequence[str],
    command: str | None,
    sections: str,
    parts: Contents,
    charts: Mapping[str, Spec],
    names: Sequence[str],
    elsewhere: str,
    made_of: str,
    altered: Sequence[str] = (),
    **values: Any,
) -> str:
    """Return one self-contained page. Nothing that a model or a server wrote is ever run: text stays text.

    ``subject``: what the page is about, the first word in bold; ``sections``: the folder of the templates of
    ``parts``, which are (id, title); ``names``: the configurations that may be brought out; ``elsewhere``:
    where to look at the figures without scripts; ``made_of``: the end of the footer's sentence; ``values``:
    what the sections show.
    """
    scripts = {
        "vega": vega(),
        "behaviour": text_of("charts.js"),
        "copying": text_of("copy.js"),
        "scheme": text_of("scheme.js"),
    }
    return (
        templates()
        .get_template("page.html.j2")
        .render(
            story=story,
            facts=facts,
            subject=list(filter(None, subject)),
            command=command,
            sections=sections,
            parts=parts,
            charts={name: (spec["usermeta"], figure_spec(spec)) for name, spec in charts.items()},
            names=names,
            elsewhere=elsewhere,
            made_of=made_of,
            altered=altered,
            version=__version__,
            phase_titles=PHASE_TITLES,
            plain_name=plain_name,
            number=number,
            percent=percent,
            times=times,
            policy=security_policy(*scripts.values()),
            base_css=Markup(text_of("base.css")),
            tables_css=Markup(text_of("tables.css")),
            page_css=Markup(text_of("page.css")),
            **{name: Markup(text) for name, text in scripts.items()},
            **values,
        )
    )

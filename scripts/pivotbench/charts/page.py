"""What charts need inside a page: Vega once, the specifications as inert data, colours by CSS variables."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from pivotbench.charts.spec import Spec, figure_spec
from pivotbench.charts.theme import DARK, LIGHT, SCREEN_FONT, Ink, by_variables, config, variables
from pivotbench.figures import NO_BREAK
from pivotbench.files import write_text
from pivotbench.machine.cache import cache_folder

TEMPLATES = Path(__file__).resolve().parents[1] / "templates"
VEGA_LITE_VERSION = "6.4"


@cache
def vega() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script that defines ``window.vegaEmbed``.

    Bundling takes seconds, so the script is kept for the next time, one file a version of the bundler.
    """
    kept = cache_folder() / "vega" / f"{version('vl-convert-python')}-{VEGA_LITE_VERSION}.js"
    with suppress(OSError):
        return kept.read_text(encoding="utf-8")
    import vl_convert

    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGA_LITE_VERSION)
    with suppress(OSError):
        write_text(kept, bundle)
    return bundle


def inert_json(value: Any) -> Markup:
    """Return JSON that no HTML parser can leave a script element by, nor read as a comment."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


def css_variables(ink: Ink) -> Markup:
    """Return the declarations of a scheme's colours."""
    return Markup(" ".join(f"{name}: {colour};" for name, colour in variables(ink)))


WORD = Markup('<span class="word">{}</span>')
# Names with hyphens, and what stands between backticks.
KEPT = re.compile(r"`(?P<code>[^`]+)`|\(?[\w.]+(?:[-+][\w.]+)+[),.:;]*")


def unbroken(text: str) -> Markup:
    """Return escaped text in which names with hyphens are not broken at them where a line has room.

    What stands between backticks is set as code.
    """
    parts, end = [], 0
    for match in KEPT.finditer(text):
        code = match["code"]
        kept = Markup("<code>{}</code>").format(code) if code else WORD.format(match[0])
        parts += [escape(text[end : match.start()]), kept]
        end = match.end()
    return Markup("").join([*parts, escape(text[end:])])


def script_hash(text: str) -> str:
    """Return a script's source expression for a Content-Security-Policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def security_policy(*scripts: str) -> str:
    """Return a policy that allows exactly these inline scripts, inline styles, and no connection at all."""
    allowed = " ".join(script_hash(script) for script in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"
    )


@cache
def templates() -> Environment:
    """Return the templates; everything put into them is escaped."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        light=css_variables(LIGHT),
        dark=css_variables(DARK),
        chart_config=config(by_variables(), SCREEN_FONT),
        nbsp=NO_BREAK,
    )
    environment.filters.update(inert_json=inert_json, unbroken=unbroken)
    return environment


def text_of(template: str) -> str:
    """Return a template's own text, for files that are inserted as they are."""
    return (TEMPLATES / template).read_text(encoding="utf-8")


def chart_page(name: str, spec: Spec, source: str) -> str:
    """Return one chart as a page of its own, with the line that says where it comes from."""
    scripts = {"vega": vega(), "behaviour": text_of("charts.js")}
    return (
        templates()
        .get_template("chart.html.j2")
        .render(
            name=name,
            meta=spec["usermeta"],
            source=source,
            spec=figure_spec(spec),
            policy=security_policy(*scripts.values()),
            **{key: Markup(text) for key, text in scripts.items()},
            base_css=Markup(text_of("base.css")),
            tables_css=Markup(text_of("tables.css")),
        )
    )

"""Charts as files: interactive HTML without any address in it, SVG for slides, PNG for everything else.

Beside them lies the specification that they were drawn from, which the report draws them from again.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import vl_convert
from markupsafe import escape

from pivotbench.charts.layout import WIDTH
from pivotbench.charts.page import chart_page
from pivotbench.charts.spec import Spec
from pivotbench.charts.stored import SUFFIXES, write_index
from pivotbench.charts.theme import EXPORT_FONT, LIGHT, config
from pivotbench.errors import UserError
from pivotbench.files import read_json, write_bytes, write_text

Draw = Callable[[Sequence[str], Path, str], None]  # names, folder, source line
SCRIPT = Path(__file__).resolve().parents[2] / "draw.py"
PNG_SCALE = 2
LEGEND_PIXELS_PER_LETTER = 7
LEGEND_SYMBOL_PIXELS = 40
PADDING = 20
SOURCE_FONT_PIXELS = 11
SOURCE_HEIGHT = 18
OPACITY = re.compile(r'<path [^>]* opacity="[^>]*>')
SIZE = re.compile(r'width="(?P<width>[\d.]+)" height="(?P<height>[\d.]+)" viewBox="[^"]*">')


def write_charts(
    charts: Mapping[str, Spec], folder: Path, source: str, meanwhile: Draw | None = None
) -> None:
    """Write ``<name>.html``, ``.svg``, ``.png`` and ``.json`` (Vega-Lite) of each chart into ``folder``.

    Pictures are on white. ``source``: the line under each of them, see source_line. ``meanwhile`` has half of
    them drawn elsewhere, see two_drawing. Files of charts that no longer exist are removed. The index beside
    them says which were drawn, see stored.
    """
    for name, spec in charts.items():
        write_text(folder / f"{name}.json", json.dumps(spec, allow_nan=False))
    names, half = [*charts], (len(charts) + 1) // 2
    if meanwhile is not None:
        meanwhile(names[half:], folder, source)
        names = names[:half]
    draw(names, folder, source)
    for stale in folder.glob("*.*"):
        if stale.suffix in SUFFIXES and stale.stem not in charts:
            stale.unlink()
    write_index(folder, charts)


@contextmanager
def two_drawing() -> Iterator[Draw]:
    """Start another process that draws, and Vega in both while stage files are still read.

    What it gives draws elsewhere, at once; all is drawn at the end. Raises UserError where it is not.
    """
    threading.Thread(target=start_vega).start()
    with subprocess.Popen([sys.executable, str(SCRIPT)], stdin=subprocess.PIPE, text=True) as other:
        assert other.stdin is not None
        asked = other.stdin

        def meanwhile(names: Sequence[str], folder: Path, source: str) -> None:
            with suppress(BrokenPipeError):  # it has ended, and its return code says so
                print(json.dumps([names, str(folder), source]), file=asked, flush=True)

        try:
            yield meanwhile
        finally:
            with suppress(BrokenPipeError):
                asked.close()
    if other.returncode:
        raise UserError("not all charts could be drawn")


def start_vega() -> None:
    """Load Vega, which a process otherwise does for its first chart; it takes half a second."""
    vl_convert.vegalite_to_svg({"data": {"values": []}, "mark": "point"})


def draw(names: Sequence[str], folder: Path, source: str) -> None:
    """Write HTML, SVG and PNG of charts whose specifications lie in ``folder``."""
    for name in names:
        spec: Spec = read_json(folder / f"{name}.json")
        look = {**config(LIGHT), "background": LIGHT.background, "padding": PADDING}
        look["legend"] = {**look["legend"], "columns": legend_columns(spec["usermeta"]["legend"])}
        svg = with_source(plain_opacity(vl_convert.vegalite_to_svg(spec, config=look)), source)
        write_text(folder / f"{name}.html", chart_page(name, spec, source))
        write_text(folder / f"{name}.svg", svg)
        write_bytes(folder / f"{name}.png", vl_convert.svg_to_png(svg, scale=PNG_SCALE))


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

"""A chart as its Vega-Lite specification: how it is made of one, and what of it a page takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import altair as alt

# A Vega-Lite specification as JSON values; finding, caption, legend and table are in its usermeta.
Spec = dict[str, Any]


def specifications(charts: Mapping[str, alt.TopLevelMixin]) -> dict[str, Spec]:
    """Return charts as JSON values, by name."""
    return {name: chart.to_dict(validate=False) for name, chart in charts.items()}


def figure_spec(spec: Spec) -> Spec:
    """Return a specification for a page that sets title and legend itself, in HTML."""
    plain: Spec = without_legends({k: v for k, v in spec.items() if k not in ("title", "config")})
    return plain


def without_legends(node: Any) -> Any:
    """Return a copy of a part of a specification in which no scale has a legend."""
    if isinstance(node, dict):
        return {k: None if k == "legend" else without_legends(v) for k, v in node.items() if k != "usermeta"}
    return [without_legends(part) for part in node] if isinstance(node, list) else node

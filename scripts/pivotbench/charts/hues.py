"""The colour of a configuration: the same in every chart, given to those that matter first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import altair as alt

from pivotbench.charts.field import plain_name
from pivotbench.charts.layout import Entry
from pivotbench.charts.theme import LIGHT

OTHERS = "others"
SPECULATIVE_PLACES = 3


@dataclass(frozen=True)
class Hues:
    """Which configurations carry a colour of their own; the rest share a grey."""

    named: tuple[str, ...]

    @classmethod
    def of(cls, decision: Mapping[str, Any]) -> Hues:
        """Give colours to the winner, the best speculative configurations, then the ranking's best."""
        ranked = list(dict.fromkeys(plain_name(row["configuration"]) for row in decision["ranking"]))
        judged = [row for row in decision["speculation"] if row.get("speedup") is not None]
        judged.sort(key=lambda row: -row["speedup"])
        drafting = list(dict.fromkeys(plain_name(row["configuration"]) for row in judged))
        backends = [name for name in ranked if name not in drafting]
        order = [*backends[:1], *drafting[:SPECULATIVE_PLACES], *backends[1:], *drafting]
        return cls(tuple(dict.fromkeys(order))[: len(LIGHT.hues)])

    def series(self, configuration: str) -> str:
        """Return the value of the colour field for a configuration."""
        name = plain_name(configuration)
        return name if name in self.named else OTHERS

    def color(self, shown: Iterable[str] | None = None) -> alt.Color:
        """Return the encoding of field ``series``; ``shown`` are the configurations of the legend."""
        values = [entry.label for entry in self.legend(shown)] if shown is not None else []
        legend = alt.Legend(title=None, values=values) if values else None
        return alt.Color("series:N", scale=alt.Scale(domain=[OTHERS, *self.named]), legend=legend)

    def legend(self, configurations: Iterable[str]) -> list[Entry]:
        """Return the legend of a chart of these configurations, in the order of colours."""
        present = {self.series(name) for name in configurations}
        entries = [Entry(n, f"hues-{i}") for i, n in enumerate(self.named, start=1) if n in present]
        return [*entries, Entry(OTHERS, "chart-other")] if OTHERS in present else entries


def focus_opacity(shown: float = 1.0, dimmed: float = 0.12, others: float | None = None) -> alt.OpacityValue:
    """Return an opacity that falls for all but the configuration that parameter ``focus`` names.

    ``others``: the opacity of those that share a grey, while nothing is in focus.
    """
    tests: list[dict[str, Any]] = [{"test": "focus !== '' && datum.name !== focus", "value": dimmed}]
    if others is not None:
        tests.append({"test": f"focus === '' && datum.series === '{OTHERS}'", "value": others})
    return alt.OpacityValue(shown, condition=tests)

"""How the configurations of a phase stand to its best, and what is said of each beside its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pivotbench.figures import count, percent

Comparison = Mapping[str, Any]
OPEN = ("undecided", "not_comparable")


@dataclass(frozen=True)
class Field:
    """The ranked configurations of one phase, the best of them, and how each other stands to it.

    ``others`` maps a name to its comparison with the best, turned so that ratio and verdict are the other's.
    """

    ranking: Sequence[Mapping[str, Any]]
    best: str
    others: Mapping[str, Comparison]

    @property
    def standing(self) -> str:
        """What the others are held against: the best, or only the baseline, or only the highest mean."""
        leads = self.best == self.ranking[0]["configuration"]
        if self.best.endswith("+none") and not leads:
            return "baseline"
        return "best" if leads and not self.open else "highest mean" if leads else "chosen"

    @property
    def open(self) -> bool:
        """Whether anybody is not told apart from the best."""
        return any(row["verdict"] in OPEN for row in self.others.values())


def stand_ins(winner: str | None) -> tuple[str, ...]:
    """Return the names under which a winner may be ranked: its own, or that of its relaunch as baseline."""
    return (winner, f"{winner}+none") if winner else ()


def fields(decision: Mapping[str, Any]) -> dict[str, Field]:
    """Return the field of each phase that has one; the winner is the best of its phase."""
    found: dict[str, Field] = {}
    for phase in dict.fromkeys(row["phase"] for row in decision["ranking"]):
        ranking = [row for row in decision["ranking"] if row["phase"] == phase]
        names_ = [row["configuration"] for row in ranking]
        best = next((name for name in stand_ins(decision["winner"]) if name in names_), names_[0])
        others: dict[str, Comparison] = {}
        for row in decision["comparisons"]:
            if row["phase"] == phase and best in (row["a"], row["b"]):
                seen = turned(row) if row["a"] == best else row
                others[seen["a"]] = seen
        found[phase] = Field(ranking, best, others)
    return found


def turned(row: Comparison) -> dict[str, Any]:
    """Return a comparison of a with b as one of b with a."""
    verdicts = {"faster": "slower", "slower": "faster"}
    ratio, interval = row.get("ratio"), row.get("ci")
    return {
        **row,
        "a": row["b"],
        "b": row["a"],
        "ratio": 1 / ratio if ratio else ratio,
        "ci": [1 / interval[1], 1 / interval[0]] if interval and all(interval) else interval,
        "verdict": verdicts.get(row["verdict"], row["verdict"]),
    }


def verdict_words(name: str, field: Field) -> str:
    """Return the verdict on one configuration, short enough to stand beside its point."""
    if name == field.best:
        return field.standing if len(field.ranking) > 1 else ""
    row = field.others.get(name)
    if row is None:
        return ""
    if row["verdict"] in ("slower", "faster") and row.get("ratio"):
        return f"{percent(row['ratio'] - 1, signed=True)}, {row['verdict']}"
    if row["verdict"] == "undecided" and row.get("rounds_needed"):
        return f"undecided, ~{count(row['rounds_needed'], 'round')} more"
    return str(row["verdict"]).replace("_", " ")


def plain_name(configuration: str) -> str:
    """Return the name a configuration goes by: ``<base>+none`` is the base itself, relaunched."""
    return configuration.removesuffix("+none")

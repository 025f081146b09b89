"""What the study asked, as the charts need it: the one scalar that decides, and its limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pivotbench.figures import count, names
from pivotbench.latency_limits import Goodput

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Question:
    """The declared metric: a weighted geometric mean of output tok/s over workloads.

    At one ``concurrency``, or where that is None at the largest load within the limits of ``goodput``.
    """

    workloads: Mapping[str, float]
    concurrency: int | None
    goodput: Goodput | None
    margin: float
    confidence: float

    @classmethod
    def of(cls, decision: Mapping[str, Any]) -> Question:
        """Return the question a decision answered."""
        metric = decision["metric"]
        return cls(
            workloads={str(name): float(weight) for name, weight in metric["workloads"].items()},
            concurrency=metric["concurrency"],
            goodput=Goodput.from_json(metric["goodput"]) if metric["goodput"] else None,
            margin=float(metric["margin"]),
            confidence=float(metric["confidence"]),
        )

    @property
    def load(self) -> str:
        """At which load speed counts, in words."""
        if self.goodput is not None:
            return f"at the largest {self.goodput.over} with {self.goodput.words}"
        return f"with {count(self.concurrency or 0, 'stream')}"

    @property
    def label(self) -> str:
        """The metric in words."""
        return f"output tok/s on {names(list(self.workloads))} {self.load}"

    def samples(self, measurements: pd.DataFrame) -> pd.DataFrame:
        """Return the rows that the metric is made of; for goodput those of all loads that were searched."""
        wanted = measurements["workload"].isin(list(self.workloads))
        if self.goodput is None:
            wanted &= (measurements["concurrency"] == self.concurrency).fillna(False)
        else:
            over = "concurrency" if self.goodput.over == "concurrency" else "rate_per_second"
            wanted &= measurements[over].notna()
        return measurements[wanted]


def of_metric(metric: Mapping[str, Any], run: Mapping[str, Any]) -> bool:
    """Return whether a run of throughput.json is at a load that counts for the metric."""
    if run["workload"] not in metric["workloads"]:
        return False
    if metric["goodput"]:
        return Goodput.from_json(metric["goodput"]).load(run) is not None
    return bool(run["concurrency"] == metric["concurrency"])


def metric_rounds(decision: Mapping[str, Any]) -> pd.DataFrame:
    """Return one row a ranked configuration and round: phase, configuration, round, tok_s of the metric."""
    import pandas as pd

    rows = [
        {"phase": row["phase"], "configuration": row["configuration"], **each}
        for row in decision["ranking"]
        for each in row["by_round"]
    ]
    return pd.DataFrame(rows, columns=["phase", "configuration", "round", "tok_s"])

"""What the study asked, as the charts need it: the one scalar that decides, and its limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pivotbench.charts.figures import count, names


@dataclass(frozen=True)
class Question:
    """The declared metric: a weighted geometric mean over workloads at one concurrency, in tok/s."""

    workloads: Mapping[str, float]
    concurrency: int
    margin: float
    confidence: float

    @classmethod
    def of(cls, decision: Mapping[str, Any]) -> Question:
        """Return the question a decision answered."""
        metric = decision["metric"]
        return cls(
            workloads={str(name): float(weight) for name, weight in metric["workloads"].items()},
            concurrency=int(metric["concurrency"]),
            margin=float(metric["margin"]),
            confidence=float(metric["confidence"]),
        )

    @property
    def label(self) -> str:
        """The metric in words."""
        return f"output tok/s on {names(list(self.workloads))} with {count(self.concurrency, 'stream')}"

    def samples(self, measurements: pd.DataFrame) -> pd.DataFrame:
        """Return the rows that the metric is made of."""
        wanted = measurements["workload"].isin(list(self.workloads)) & (
            measurements["concurrency"] == self.concurrency
        )
        return measurements[wanted]

    def rounds(self, measurements: pd.DataFrame) -> pd.DataFrame:
        """Return one row a configuration and round: phase, configuration, round, tok_s.

        A round that lacks one of the workloads, or whose speed may be the load generator's, has no value
        and is left out.
        """
        keys = ["phase", "configuration", "round"]
        samples = self.samples(measurements)
        limited = samples.groupby(keys)["client_bound"].transform("any").astype(bool)
        samples = samples[~limited]
        if samples.empty:
            return pd.DataFrame(columns=[*keys, "tok_s"])
        means = np.log(samples.groupby([*keys, "workload"])["output_tok_s"].mean()).unstack("workload")
        means = means.reindex(columns=list(self.workloads)).dropna()
        weights = np.array(list(self.workloads.values()))
        score = np.exp(means.to_numpy() @ (weights / weights.sum()))
        rounds: pd.DataFrame = means.index.to_frame(index=False).assign(tok_s=score)
        return rounds

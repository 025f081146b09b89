"""What a study says about deciding, as plain data: the metric, the margin, the risk, the rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pivotbench.latency_limits import Goodput


@dataclass(frozen=True)
class DecisionRules:
    """The part of a study that decisions depend on.

    ``metric_weights`` maps workloads to positive weights; the one scalar that decides is the weighted
    geometric mean of output tok/s at ``metric_concurrency``, or where that is None of ``goodput``, at the
    largest load within its limits. ``margin`` is relative: 0.02 is 2 %.
    ``gpus``: how many one server uses, 0 for the CPU. ``reference``: whose answers the others' are held
    against, None for the first by name; ``agreement_bound``: the mean distance of log probabilities, in nats,
    that is no fault. ``gpu_hours``: the budget of all phases together, None for none. ``speed_only``: the
    study has answers recorded, not judged. ``stated``: the study's own hypotheses, (a, verdict, b).
    ``workloads``: all of them, as the study writes them.
    ``versions``: which version of the engine a backend runs, for those of which the study says so.
    """

    study: str
    engine: str
    model: str
    metric_weights: Mapping[str, float]
    metric_concurrency: int | None
    margin: float
    confidence: float
    rounds_min: int
    rounds_max: int
    gpus: int = 0
    speculative_base: str | None = None
    reference: str | None = None
    agreement_bound: float = 0.25
    gpu_hours: float | None = None
    speed_only: bool = False
    stated: Sequence[tuple[str, str, str]] = ()
    goodput: Goodput | None = None
    workloads: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_study(cls, study: Any) -> DecisionRules:
        """Return the rules of a loaded study (pivotbench.study.Study)."""
        decision = study.decision
        goodput = decision.metric.goodput
        return cls(
            study=study.name,
            engine=study.engine,
            model=getattr(study.model, "name", None) or str(study.model),
            metric_weights=dict(decision.metric.workloads),
            metric_concurrency=decision.metric.concurrency,
            margin=decision.margin,
            confidence=decision.confidence,
            rounds_min=decision.rounds.min,
            rounds_max=decision.rounds.max,
            gpus=study.hosts.gpus,
            speculative_base=study.speculative_base,
            reference=decision.reference,
            agreement_bound=decision.agreement_bound,
            gpu_hours=decision.budget.gpu_hours if decision.budget else None,
            speed_only=study.smoke.speed_only,
            stated=tuple((h.a, h.verdict, h.b) for h in decision.hypotheses),
            goodput=Goodput.from_json(goodput.model_dump()) if goodput else None,
            workloads=study.source.data["throughput"]["workloads"] if study.source else {},
            versions={name: v for name in study.configurations if (v := study.version_of(name))},
        )

    def version_of(self, configuration: str) -> str | None:
        """Return the version that a configuration, or its base, runs by the study's word, if it says so."""
        return self.versions.get(configuration.partition("+")[0])

    @property
    def pace(self) -> dict[str, Any]:
        """What stands beside the workloads in the study's ``decision.metric``."""
        if self.goodput is not None:
            return {"goodput": self.goodput.to_json()}
        return {"concurrency": self.metric_concurrency}

    @property
    def looks(self) -> int:
        """How often the evidence may be judged: after each round that has a variance, up to the last."""
        return max(1, self.rounds_max - max(self.rounds_min, 2) + 1)

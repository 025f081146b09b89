"""The study: one YAML file, read with line numbers, checked, and expanded to configurations."""

from pivotbench.study.backends import Backends, Speculative
from pivotbench.study.conflicts import check_conflicts
from pivotbench.study.environment import check_secrets
from pivotbench.study.flags import check_flags, deprecated_flags
from pivotbench.study.loader import load_study
from pivotbench.study.metric import Metric
from pivotbench.study.model import Study
from pivotbench.study.sections import (
    Decision,
    Hosts,
    Rounds,
    Smoke,
    SmokePrompt,
)
from pivotbench.study.served_model import Model
from pivotbench.study.throughput import Throughput, Workload
from pivotbench.study.versions import VERSION, Container, Version

__all__ = [
    "VERSION",
    "Backends",
    "Container",
    "Decision",
    "Hosts",
    "Metric",
    "Model",
    "Rounds",
    "Smoke",
    "SmokePrompt",
    "Speculative",
    "Study",
    "Throughput",
    "Version",
    "Workload",
    "check_conflicts",
    "check_flags",
    "check_secrets",
    "deprecated_flags",
    "load_study",
]

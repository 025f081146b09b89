"""Whom the answers of a phase are held against."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pivotbench.agreement.reading import Witness
from pivotbench.decision_rules import DecisionRules


def baseline(names: Iterable[str]) -> str | None:
    """Return the ``<base>+none`` among the names of a speculative phase."""
    return next((n for n in sorted(names) if n.endswith("+none")), None)


def reference_of(rules: DecisionRules, phase: str, healthy: Mapping[str, Witness]) -> str | None:
    """Return the reference among those that work, or None where nobody can be one.

    In phase two it is the baseline. In phase one it is the study's; where that does not work, or none is
    named, the first by name. One that fails every prompt is passed over for the first that does not, for
    what another configuration can answer, the model can.
    """
    if phase == "speculative":
        return baseline(healthy)
    if rules.reference in healthy:
        return rules.reference
    able = [name for name, witness in healthy.items() if not unable(witness)]
    return min(able or healthy, default=None)


def unable(witness: Witness) -> bool:
    """Return whether a configuration fails every prompt, so that nothing can be held against its answers."""
    return bool(witness.answers) and witness.problems.keys() == witness.answers.keys()

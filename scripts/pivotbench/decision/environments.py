"""The machines the evidence was taken on: environment.json, and who may be compared with whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from pivotbench.evidence import CellFiles
from pivotbench.files import canonical_json
from pivotbench.machine.host import ENGINE_PARTS, comparable_part

SCHEMA = "pivotbench/environment/1"


def aggregate(cells: Iterable[CellFiles]) -> dict[str, Any]:
    """Return each distinct environment that the launches recorded, with the cells launched in it."""
    found: dict[str, dict[str, Any]] = {}
    for cell in cells:
        if cell.environment:
            entry = found.setdefault(
                canonical_json(cell.environment), {"environment": cell.environment, "cells": []}
            )
            entry["cells"].append(f"{cell.phase}/{cell.configuration}/r{cell.round}")
    return {"schema": SCHEMA, "environments": [found[key] for key in sorted(found)]}


def most_frequent(counts: Counter[str]) -> str | None:
    """Return what was counted most often, the first by name of several; None where nothing was."""
    return min(counts, key=lambda name: (-counts[name], name), default=None)


def undeclared(
    cells: Iterable[CellFiles], version_of: Callable[[str], str | None], *, gpus: int
) -> dict[str, frozenset[str]]:
    """Return the environments each configuration was measured in, but for what the study declares to differ.

    Two configurations may be compared where they share one. The version of the engine that a study names is
    a factor of its own: what it turned out to be (number, packages, image) is left out, where it is what most
    of the version's cells ran. A cell that ran another build of it keeps that, and stands apart.
    """
    parts = [(c, comparable_part(c.environment, gpus=gpus)) for c in cells if c.measured]
    if any(part["packages"] is None for _, part in parts):
        # Of results from before packages were recorded nothing is known of them.
        parts = [(cell, {**part, "packages": None}) for cell, part in parts]

    def build(part: dict[str, Any]) -> str:
        return canonical_json({name: part[name] for name in ENGINE_PARTS})

    counts: dict[str | None, Counter[str]] = {}
    for cell, part in parts:
        counts.setdefault(version_of(cell.configuration), Counter())[build(part)] += 1
    usual = {version: most_frequent(count) for version, count in counts.items()}
    found: dict[str, set[str]] = {}
    for cell, part in parts:
        as_declared = build(part) == usual[version_of(cell.configuration)]
        shared = {k: v for k, v in part.items() if not (as_declared and k in ENGINE_PARTS)}
        found.setdefault(cell.configuration, set()).add(canonical_json(shared))
    return {name: frozenset(environments) for name, environments in found.items()}

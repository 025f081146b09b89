"""One thing to try next, and its study snippet in the spelling of the study's engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from pivotbench.evidence import CellFiles

Lever = dict[str, str]


def lever(what: str, because: str, fragment: Mapping[str, Any], refuted_by: str) -> Lever:
    """Return an entry of decision.json's ``next_levers``.

    ``fragment`` is a piece of a study: what stands under its sections replaces the study's keys of that name.
    """
    return {"lever": what, "because": because, "snippet": snippet(fragment), "refuted_by": refuted_by}


def snippet(fragment: Mapping[str, Any]) -> str:
    """Return a piece of a study as YAML, short mappings on one line."""
    return str(yaml.safe_dump(dict(fragment), sort_keys=False, default_flow_style=None, width=10_000))


def variant(
    cell: CellFiles, suffix: str, flags: Mapping[str, Any], version: str | None = None
) -> dict[str, Any]:
    """Return the fragment that adds a configuration like the cell's, with other flags on top of its own.

    A backend's variant stands among the backends, also where the cell is its relaunch as a baseline; it runs
    the version of the engine that the study gives the backend, if any.
    """
    base, _, drafting = cell.configuration.partition("+")
    if drafting and drafting != "none":
        return {"speculative": {f"{drafting}-{suffix}": {**cell.requested, **flags}}}
    own = {} if version is None else {"version": version}
    return {"backends": {f"{base}-{suffix}": {**own, **cell.requested, **flags}}}

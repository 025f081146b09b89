"""What a launch records of its model, so that stored results tell what it could have reached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pivotbench.engines.spelling import Spelling
from pivotbench.model.shape import ModelShape, UnknownShape, read_shape
from pivotbench.settings import flat


def model_facts(
    spelling: Spelling,
    model: str,
    revision: str | None,
    flags: Mapping[str, Any],
    effective: Mapping[str, Any],
) -> dict[str, Any]:
    """Return launch.json's ``model``: its shape as it is served, or None and why it is not known.

    ``flags``: as requested; ``effective``: as the server reports them, which wins.
    """
    told = {**flat(flags), **flat(effective)}

    def text(name: str | None) -> str | None:
        value = told.get(name) if name else None
        return value if isinstance(value, str) else None

    try:
        shape = read_shape(
            model,
            revision=revision,
            dtype=text(spelling.dtype),
            quantization=text(spelling.quantization),
            kv_dtype=text(spelling.cache_dtype),
        )
    except UnknownShape as unknown:
        return {"shape": None, "why": str(unknown)}
    return {"shape": shape.as_json(), "why": None}


def recorded_shape(launch: Mapping[str, Any] | None) -> tuple[ModelShape | None, str | None]:
    """Return the shape that launch.json holds, or None and why."""
    facts = (launch or {}).get("model")
    if not facts:
        return None, "its launch recorded nothing of the model"
    if facts["shape"] is None:
        return None, str(facts["why"])
    try:
        return ModelShape(**facts["shape"]), None
    except TypeError:
        return None, "its launch recorded the model in another form"

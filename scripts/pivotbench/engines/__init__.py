"""The engines Pivotbench can serve with, by the name a study gives."""

from __future__ import annotations

import difflib
from importlib import import_module
from pathlib import Path

from pivotbench.engines.base import Engine
from pivotbench.errors import UserError

# Name -> module and object; imported when asked for, so that a stage loads one engine only.
ENGINES = {
    "llamacpp": ("pivotbench.engines.llamacpp", "LLAMACPP"),
    "sglang": ("pivotbench.engines.sglang", "SGLANG"),
}


def get_engine(name: str) -> Engine:
    """Return the engine of this name; raises UserError with the nearest name where there is none."""
    if name not in ENGINES:
        near = difflib.get_close_matches(name, ENGINES, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"choose one of {', '.join(ENGINES)}"
        raise UserError(f"unknown engine {name!r}: {hint}")
    module, attribute = ENGINES[name]
    engine: Engine = getattr(import_module(module), attribute)
    return engine


def engine_python(name: str, study_python: Path | None, root: Path) -> Path:
    """Return the interpreter the engine runs under: the study's own, or ``root``'s ``.venv-<engine>``."""
    return study_python or root / f".venv-{name}" / "bin" / "python"

"""The engines Pivotbench can serve with, by the name a study gives.

Those that come with it, and those of whoever uses it: ``config/engines/<name>.py`` below the working
directory, where results go too, whose ``ENGINE`` is one.
"""

from __future__ import annotations

import difflib
import re
import sys
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from pivotbench.engines.base import Engine
from pivotbench.engines.spelling import Spelling
from pivotbench.errors import UserError
from pivotbench.files import sha256_of_file

# Name -> module and object; imported when asked for, so that a stage loads one engine only.
ENGINES = {
    "llamacpp": ("pivotbench.engines.llamacpp", "LLAMACPP"),
    "sglang": ("pivotbench.engines.sglang", "SGLANG"),
}
NAME_PATTERN = r"[a-z0-9][a-z0-9-]*"
OWN_ENGINES = Path("config") / "engines"


def get_engine(name: str) -> Engine:
    """Return the engine of this name; raises UserError with the nearest name where there is none."""
    if name in ENGINES:
        module, attribute = ENGINES[name]
        engine: Engine = getattr(import_module(module), attribute)
        return engine
    place = _own_file(name)
    if place is not None:
        return _load(name, place.absolute())
    known = [*ENGINES, *sorted(path.stem for path in OWN_ENGINES.glob("*.py"))]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"choose one of {', '.join(known)}"
    raise UserError(f"unknown engine {name!r}: {hint}; one of your own goes to {OWN_ENGINES}/NAME.py")


def own_engine(name: str) -> dict[str, str]:
    """Return what launches and lists of flags depend on of an engine in a file of the user's: its content.

    Empty for those that come with Pivotbench: when these measure something else, METHOD (cells.py) is raised.
    """
    place = None if name in ENGINES else _own_file(name)
    return {} if place is None else {"engine_sha256": sha256_of_file(place)}


def _own_file(name: str) -> Path | None:
    place = OWN_ENGINES / f"{name}.py"
    return place if re.fullmatch(NAME_PATTERN, name) and place.is_file() else None


def spelling_of(name: str) -> Spelling:
    """Return how an engine names its settings; nothing is known of one that is not at hand any more."""
    try:
        return get_engine(name).spelling
    except UserError:
        return Spelling()


def engine_python(name: str, study_python: Path | None, root: Path) -> Path:
    """Return the interpreter the engine runs under: the study's own, or ``root``'s ``.venv-<engine>``."""
    return study_python or root / f".venv-{name}" / "bin" / "python"


@cache
def _load(name: str, place: Path) -> Engine:
    """Return the engine a file defines; raises UserError where it defines none of this name."""
    module = f"pivotbench_engine_{name.replace('-', '_')}"
    spec = spec_from_file_location(module, place)
    assert spec is not None and spec.loader is not None, "a .py file has a loader"
    loaded = sys.modules[module] = module_from_spec(spec)
    try:
        spec.loader.exec_module(loaded)
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise UserError(f"{place}: the engine cannot be loaded ({what}); correct the file") from error
    engine = getattr(loaded, "ENGINE", None)
    if not isinstance(engine, Engine) or engine.name != name:
        raise UserError(f"{place}: no ENGINE of name {name!r}; end it with ENGINE = <your class>()")
    return engine

"""From a study file to a Study, or to the one line that says what to correct."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from pivotbench.errors import UserError
from pivotbench.study.model import Study
from pivotbench.study.source import Source, read_source
from pivotbench.wording import KeyPath, near, quoted

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_KINDS = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "list_type": "a list",
    "dict_type": "a mapping of keys",
    "model_type": "a mapping of keys",
}
_BOUNDS = {
    "greater_than": ("gt", "above"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "below"),
    "less_than_equal": ("le", "at most"),
}
_PATTERNS = {
    "sha256": "must be 64 lower-case hex digits",
    "package": "must be a pinned package, name==version",
}


def load_study(path: Path) -> Study:
    """Read and check a study file and the prompt files it names.

    Raises UserError with one line, ``file:line: key: what is wrong and what to do``, for the first problem.
    """
    source = read_source(path)
    try:
        study = Study.model_validate(source.data, context={"folder": path.parent})
    except ValidationError as error:
        raise _first_problem(error.errors(include_url=False), source) from None
    study._source = source
    return study


def _first_problem(problems: list[ErrorDetails], source: Source) -> UserError:
    """Return the first problem in the file; misspelt keys first, since they make others appear missing."""

    def rank(problem: ErrorDetails) -> tuple[bool, int]:
        return not _message(problem).startswith("unknown key"), source.line(_path(problem))

    first = min(problems, key=rank)
    return source.error(_path(first), _message(first))


def _path(problem: ErrorDetails) -> KeyPath:
    below: KeyPath = problem["ctx"]["at"] if problem["type"] == "refused" else ()
    return (*problem["loc"], *below)


def _message(problem: ErrorDetails) -> str:
    kind, context, value = problem["type"], problem.get("ctx", {}), problem["input"]
    if kind == "refused":
        return str(context["message"])
    if kind == "missing":
        return "is required"
    if kind in _KINDS:
        return f"must be {_KINDS[kind]}, not {_described(value)}"
    if kind in _BOUNDS:
        key, words = _BOUNDS[kind]
        return f"must be {words} {context[key]:.12g}, not {value}"
    if kind == "literal_error":
        choices = str(context["expected"])
        names = choices.replace("'", "").replace(" or ", ", ").split(", ")
        match = near(value, names) if isinstance(value, str) else None
        hint = f"; did you mean {quoted(match)}?" if match else ""
        return f"must be {choices}, not {_described(value)}{hint}"
    if kind == "too_short":
        return "must hold at least one"
    if kind == "string_pattern_mismatch":
        return _PATTERNS.get(str(problem["loc"][-1]), "has the wrong form") + f", not {quoted(value)}"
    return problem["msg"]


def _described(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, bool):
        return f"{str(value).lower()} (put text in quotes)"
    if isinstance(value, int | float):
        return f"{value} (put text in quotes)"
    return quoted(value)

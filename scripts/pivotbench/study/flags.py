"""Whether the engine has the flags a study names, and takes the values it gives them."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pivotbench.engines.base import FlagCatalogue, FlagSpec, FlagValue
from pivotbench.errors import UserError
from pivotbench.study.model import Study
from pivotbench.study.source import Source
from pivotbench.study.wording import KeyPath, key_text, listed, near, quoted

Use = tuple[KeyPath, str, FlagValue]


def check_flags(study: Study, catalogue: FlagCatalogue, reserved: Collection[str] = ()) -> None:
    """Check every flag of the study against the installed engine's own list.

    ``reserved`` names the flags that are added to every launch and so cannot be in a study. Raises UserError
    for the first flag in the file that is reserved, unknown, given a value it does not take or none
    where it takes one, or written in two spellings.
    """
    spellings: dict[str, str] = {}
    problems = []
    for path, name, value in _uses(study):
        problem = _problem(name, value, catalogue, reserved) or _spelling(name, catalogue, spellings)
        if problem:
            problems.append((path, problem))
    if not problems:
        return
    source = study.source
    if source is None:
        path, problem = problems[0]
        raise UserError(f"{key_text(path)}: {problem}")
    raise _in_file(source, problems)


def _in_file(source: Source, problems: list[tuple[KeyPath, str]]) -> UserError:
    path, problem = min(problems, key=lambda item: source.line(item[0]))
    return source.error(path, problem)


def _uses(study: Study) -> Iterator[Use]:
    for name, value in study.serve.items():
        yield ("serve", name), name, value
    for configuration, flags in study.backends.named.items():
        for name, value in flags.items():
            yield ("backends", configuration, name), name, value
    for name, values in study.backends.matrix.items():
        for index, value in enumerate(values):
            yield ("backends", "matrix", name, index), name, value
    for configuration, flags in study.speculations.items():
        for name, value in flags.items():
            yield ("speculative", configuration, name), name, value


def _problem(name: str, value: FlagValue, catalogue: FlagCatalogue, reserved: Collection[str]) -> str | None:
    flag = catalogue.find(name)
    names = {name, flag.name, *flag.aliases} if flag else {name}
    if names & set(reserved):
        return "is set by Pivotbench for every launch; remove it"
    if flag is None:
        known = [spelling for spec in catalogue.flags for spelling in (spec.name, *spec.aliases)]
        match = near(name, [spelling for spelling in known if spelling not in reserved])
        hint = f"; did you mean {quoted(match)}?" if match else ""
        return f"{catalogue.engine} {catalogue.version} has no such flag{hint}"
    return _value_problem(flag, value)


def _value_problem(flag: FlagSpec, value: FlagValue) -> str | None:
    if not flag.takes_value:
        if isinstance(value, bool):
            return None
        return f"takes no value; write true to give it or false to leave it out, not {quoted(_text(value))}"
    choices = f" ({listed(flag.choices)})" if flag.choices else ""
    if isinstance(value, bool):
        return f"needs a value{choices}, not {str(value).lower()}; put text in quotes"
    if isinstance(value, list) and not flag.many:
        return "takes one value, not a list; alternatives belong under backends.matrix"
    for item in value if isinstance(value, list) else [value]:
        if flag.choices is not None and str(item) not in flag.choices:
            match = near(str(item), flag.choices)
            hint = f"; did you mean {quoted(match)}?" if match else ""
            return f"{quoted(str(item))} is none of {listed(flag.choices)}{hint}"
    return None


def _text(value: FlagValue) -> str:
    return " ".join(str(item) for item in value) if isinstance(value, list) else str(value)


def _spelling(name: str, catalogue: FlagCatalogue, spellings: dict[str, str]) -> str | None:
    """Two spellings of one flag would both reach the command line, and the order would decide."""
    flag = catalogue.find(name)
    first = spellings.setdefault(flag.name, name) if flag else name
    return None if first == name else f"is the flag written {quoted(first)} elsewhere; use one spelling"

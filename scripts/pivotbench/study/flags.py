"""Whether each version of the engine has the flags a study gives it, and takes their values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

from pivotbench.engines.base import FlagValue
from pivotbench.engines.catalogue import FlagCatalogue, FlagSpec
from pivotbench.errors import UserError
from pivotbench.study.backends import value_text
from pivotbench.study.model import Study
from pivotbench.study.source import Source
from pivotbench.study.versions import VERSION
from pivotbench.wording import KeyPath, key_text, listed, near, quoted

# Where a flag stands, its name and value, and the versions of the engine that are launched with it.
Use = tuple[KeyPath, str, FlagValue, frozenset[str | None]]
Catalogues = Mapping[str | None, FlagCatalogue]


def check_flags(study: Study, catalogues: Catalogues, reserved: Collection[str] = ()) -> None:
    """Check every flag of the study against the list of each version of the engine that gets it.

    ``catalogues`` holds the versions whose list is known, by the study's name for them (None: its own);
    others are passed over. ``reserved`` names the flags that are added to every launch and so cannot be in a
    study. Raises UserError for the first flag in the file that is reserved, unknown, given a value it does
    not take or none where it takes one, or written in two spellings.
    """
    spellings: dict[str | None, dict[str, str]] = {version: {} for version in catalogues}
    problems = []
    for path, name, value, versions in _uses(study):
        for version in _ordered(versions & catalogues.keys()):
            catalogue = catalogues[version]
            problem = _problem(name, value, catalogue, reserved)
            problem = problem or _spelling(name, catalogue, spellings[version])
            if problem:
                problems.append((path, problem))
                break
    if not problems:
        return
    source = study.source
    if source is None:
        path, problem = problems[0]
        raise UserError(f"{key_text(path)}: {problem}")
    raise _in_file(source, problems)


def deprecated_flags(study: Study, catalogues: Catalogues) -> list[str]:
    """Return a line for each flag of the study that a version calls deprecated, with what to use instead."""
    found: dict[str, None] = {}
    for path, name, _, versions in _uses(study):
        for version in _ordered(versions & catalogues.keys()):
            catalogue = catalogues[version]
            flag = catalogue.find(name)
            if flag is not None and flag.deprecated:
                words = f"deprecated in {catalogue.engine} {catalogue.version}: use {flag.deprecated}"
                source = study.source
                found.setdefault(str(source.error(path, words)) if source else f"{key_text(path)}: {words}")
    return list(found)


def _ordered(versions: Iterable[str | None]) -> list[str | None]:
    return sorted(versions, key=lambda version: version or "")


def _in_file(source: Source, problems: list[tuple[KeyPath, str]]) -> UserError:
    path, problem = min(problems, key=lambda item: source.line(item[0]))
    return source.error(path, problem)


def _uses(study: Study) -> Iterator[Use]:
    version_of = {name: study.version_of(name) for name in study.configurations}
    pinned = study.speculative_base
    launched = frozenset([version_of[pinned]] if pinned else version_of.values())
    for name, value in study.serve.items():
        if name != VERSION:
            yield ("serve", name), name, value, launched
    for configuration, flags in study.backends.named.items():
        for name, value in flags.items():
            if name != VERSION:
                yield ("backends", configuration, name), name, value, frozenset([version_of[configuration]])
    named = study.backends.named
    combinations = {name: flags for name, flags in study.configurations.items() if name not in named}
    for name, values in study.backends.matrix.items():
        if name == VERSION:
            continue
        versions: defaultdict[str, set[str | None]] = defaultdict(set)
        for configuration, flags in combinations.items():
            versions[value_text(flags[name])].add(version_of[configuration])
        for index, value in enumerate(values):
            yield ("backends", "matrix", name, index), name, value, frozenset(versions[value_text(value)])
    for configuration, flags in study.speculations.items():
        for name, value in flags.items():
            yield ("speculative", configuration, name), name, value, launched


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
    return _value_problem(flag, value, catalogue)


def _value_problem(flag: FlagSpec, value: FlagValue, catalogue: FlagCatalogue) -> str | None:
    if not flag.takes_value:
        if isinstance(value, bool):
            return None
        return (
            f"takes no value; write true to give it or false to leave it out, not {quoted(value_text(value))}"
        )
    choices = f" ({listed(flag.choices)})" if flag.choices else ""
    if isinstance(value, bool):
        return f"needs a value{choices}, not {str(value).lower()}; put text in quotes"
    if isinstance(value, list) and not flag.many:
        return "takes one value, not a list; alternatives belong under backends.matrix"
    for item in value if isinstance(value, list) else [value]:
        if flag.choices is not None and str(item) not in flag.choices:
            match = near(str(item), flag.choices)
            hint = f"; did you mean {quoted(match)}?" if match else ""
            engine = f"{catalogue.engine} {catalogue.version}"
            return f"{quoted(str(item))} is none of {listed(flag.choices)}{hint} ({engine})"
    return None


def _spelling(name: str, catalogue: FlagCatalogue, spellings: dict[str, str]) -> str | None:
    """Two spellings of one flag would both reach the command line, and the order would decide."""
    flag = catalogue.find(name)
    first = spellings.setdefault(flag.name, name) if flag else name
    return None if first == name else f"is the flag written {quoted(first)} elsewhere; use one spelling"

"""Whether the flags of a configuration go together: told before any GPU time is spent.

Refused is only what the engine itself refuses by all that was read of its version; all else is a warning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pivotbench.engines.catalogue import FlagCatalogue
from pivotbench.engines.findings import Facts, Finding, findings
from pivotbench.errors import UserError
from pivotbench.study.model import Study
from pivotbench.wording import KeyPath, key_text, listed, near, quoted

ALGORITHM = "speculative-algorithm"


@dataclass(frozen=True)
class Conflict:
    """One finding and where in the study to change it; ``refused``: with whatever it is combined."""

    path: KeyPath
    finding: Finding
    refused: bool

    @property
    def words(self) -> str:
        """What is wrong, in one line."""
        return f"{self.finding.message} [{self.finding.id}]"


def check_conflicts(
    study: Study, catalogues: Mapping[str | None, FlagCatalogue], kinds: frozenset[str] = frozenset()
) -> list[str]:
    """Return a warning, one line each, for every set of flags that is known to do something else than asked.

    ``catalogues``: of the versions that are known, as check_flags takes them; ``kinds``: of the model, as far
    as this machine can tell. Raises UserError for the first set in the file that the version which gets it
    refuses, and for a misspelt speculative algorithm.
    """
    _check_algorithms(study, catalogues.values())
    found = conflicts(study, {name: catalogue.version for name, catalogue in catalogues.items()}, kinds)
    refused = [conflict for conflict in found if conflict.refused]
    if refused:
        first = min(refused, key=lambda conflict: _line(study, conflict.path))
        raise _error(study, first.path, first.words)
    return [_where(study, conflict.path, conflict.words) for conflict in found]


def conflicts(
    study: Study, versions: Mapping[str | None, str], kinds: frozenset[str] = frozenset()
) -> list[Conflict]:
    """Return every finding on the study's configurations that needs no GPU to be seen, each rule once a name.

    ``versions``: the engine's numbers by the study's names for them. A speculative configuration is looked at
    on every backend it may run on. It is refused where all of them end in the engine's refusal; where only
    some do, that is for a launch to show.
    """
    found: dict[tuple[str, KeyPath], Conflict] = {}
    base = study.speculative_base
    backends = {base: study.configurations[base]} if base else study.configurations
    alone: set[str] = set()
    for name, flags in backends.items():
        for finding in _findings(study, [flags], versions.get(study.version_of(name)), kinds):
            alone.add(finding.id)
            _keep(found, finding, _path(study, finding, [("backends", name)]), finding.certain)
    for name, flags in study.speculations.items():
        on_each = [
            _findings(study, [given, flags], versions.get(study.version_of(backend)), kinds)
            for backend, given in backends.items()
        ]
        certain = [{finding.id for finding in of_base if finding.certain} for of_base in on_each]
        owners = [("speculative", name), *(("backends", backend) for backend in backends)]
        for finding in (f for of_base in on_each for f in of_base if f.id not in alone):
            refused = all(finding.id in ids for ids in certain)
            _keep(found, finding, _path(study, finding, owners), refused)
    return sorted(found.values(), key=lambda conflict: _line(study, conflict.path))


def _findings(
    study: Study, layers: Iterable[Mapping[str, Any]], version: str | None, kinds: frozenset[str]
) -> list[Finding]:
    flags = dict(study.serve)
    for layer in layers:
        flags |= layer
    concurrency = [n for w in study.throughput.workloads.values() for n in w.concurrency or ()]
    facts = Facts(
        flags=flags,
        gpus=study.hosts.gpus,
        version=version,
        model=kinds,
        concurrency=max(concurrency, default=None),
    )
    return findings(study.engine, facts)


def _keep(found: dict[tuple[str, KeyPath], Conflict], finding: Finding, path: KeyPath, refused: bool) -> None:
    found.setdefault((finding.id, path), Conflict(path, finding, refused))


def _path(study: Study, finding: Finding, owners: Iterable[tuple[str, str]]) -> KeyPath:
    """The key to change: the last flag the rule speaks of, in the most special place that gives it."""
    places: list[tuple[KeyPath, Mapping[str, Any]]] = []
    for section, name in owners:
        given = (study.speculations if section == "speculative" else study.configurations)[name]
        if section == "backends" and name not in study.backends.named:
            places.append((("backends", "matrix"), given))
        else:
            places.append(((section, name), given))
    places.append((("serve",), study.serve))
    for path, flags in places:
        for flag in reversed(finding.flags):
            if flag in flags:
                return path if path == ("backends", "matrix") else (*path, flag)
    return places[0][0]


def _check_algorithms(study: Study, catalogues: Iterable[FlagCatalogue]) -> None:
    """SGLang names its algorithms in the flag's help and takes others too, which plugins bring."""
    helps = [flag.help for catalogue in catalogues if (flag := catalogue.find(ALGORITHM))]
    told = [found[1] for text in helps if (found := re.search(r"Builtins: ([\w ,]+)", text))]
    names = list(dict.fromkeys(name.strip() for line in told for name in line.split(",")))
    if not names:
        return
    for path, given in _given(study):
        value = given.get(ALGORITHM)
        if value and str(value).upper() not in names and (match := near(str(value), names)):
            message = f"{quoted(str(value))} is none of {listed(names)}; did you mean {quoted(match)}?"
            raise _error(study, (*path, ALGORITHM), message)


def _given(study: Study) -> Iterator[tuple[KeyPath, Mapping[str, Any]]]:
    yield ("serve",), study.serve
    for name, flags in study.backends.named.items():
        yield ("backends", name), flags
    for name, flags in study.speculations.items():
        yield ("speculative", name), flags


def _line(study: Study, path: KeyPath) -> int:
    return study.source.line(path) if study.source else 0


def _error(study: Study, path: KeyPath, message: str) -> UserError:
    return study.source.error(path, message) if study.source else UserError(f"{key_text(path)}: {message}")


def _where(study: Study, path: KeyPath, message: str) -> str:
    return str(_error(study, path, message))

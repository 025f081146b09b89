"""A study on this machine: its cells, what their stages are given, and which results still hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pivotbench.cells import (
    BASELINE,
    Cell,
    flags_of,
    installation_request,
    launch_request,
    prompt_files,
    smoke_request,
    stage_fingerprint,
    throughput_request,
)
from pivotbench.engines import engine_python, get_engine
from pivotbench.engines.base import Engine
from pivotbench.engines.catalogue import FlagCatalogue
from pivotbench.errors import UserError
from pivotbench.evidence import race_paths
from pivotbench.files import canonical_json
from pivotbench.installations import Installation, kept_flags, known_versions
from pivotbench.machine.containers import image_identity
from pivotbench.machine.host import describe
from pivotbench.model.local import check_readable
from pivotbench.preflight import known_kinds
from pivotbench.provision import is_installed, model_path, pinned_version, requirements_file
from pivotbench.results import DECISION_SCHEMA, DERIVATION, STAGES, Stage
from pivotbench.staleness import Judge
from pivotbench.study import Study


@dataclass
class Campaign:
    """A study, and the repository folder ``root`` whose engines and models it uses.

    ``local`` is false where the servers run on other machines than this one (a cluster).
    """

    study: Study
    root: Path
    local: bool = True
    retry_all: bool = False
    _ready: set[str | None] = field(default_factory=set)
    _fingerprints: dict[tuple[Stage, str, str], str] = field(default_factory=dict)

    @property
    def results(self) -> Path:
        """The study's folder of results, relative to the working directory."""
        return Path("results") / self.study.name

    @cached_property
    def engine(self) -> Engine:
        """The kind of server."""
        return get_engine(self.study.engine)

    @cached_property
    def versions(self) -> tuple[str | None, ...]:
        """The versions of the engine that configurations run, by name; None is the study's own."""
        named = {self.study.version_of(name) for name in self.study.configurations}
        return tuple(sorted(named, key=lambda name: name or ""))

    def installation(self, version: str | None) -> Installation:
        """Return where a version of the engine is on this machine."""
        ours = engine_python(self.study.engine, None, self.root)
        return Installation.of_request(installation_request(self.study, version), str(ours))

    def installs(self, version: str | None) -> bool:
        """Return whether Pivotbench installs this version: the study names no environment for it."""
        return version is None and self.study.python is None and self.study.container is None

    @cached_property
    def model(self) -> str:
        """The model as the engine is given it: a path or a hub id."""
        return str(model_path(self.study.model))

    def check_model(self) -> None:
        """Check a model of the user's own on this machine; raises UserError, or OSError that names a file."""
        if self.study.model.local_path is not None:
            check_readable(self.study.model.local_path)

    @cached_property
    def kinds(self) -> frozenset[str]:
        """Return what kind of model it is, as far as this machine has its config.json."""
        return known_kinds(self.model, self.study.model.revision)

    def catalogues(self) -> dict[str | None, FlagCatalogue]:
        """Return the flags of every version whose list was read on this machine before."""
        found = {version: self._kept_flags(version) for version in self.versions}
        return {version: catalogue for version, catalogue in found.items() if catalogue is not None}

    def _kept_flags(self, version: str | None) -> FlagCatalogue | None:
        if self.installs(version) and not is_installed(self.study.engine, self.root):
            return None
        return kept_flags(self.engine, self.installation(version), self.study.env)

    @cached_property
    def pins(self) -> list[str]:
        """Return the files whose change makes the engine's environment anew; none where it is the user's."""
        ours = any(map(self.installs, self.versions))
        return [str(requirements_file(self.study.engine, self.root))] if ours else []

    @cached_property
    def _judges(self) -> dict[str | None, Judge]:
        return {
            version: Judge(self._present(version), gpus=self.study.hosts.gpus, retry_all=self.retry_all)
            for version in self.versions
        }

    def _present(self, version: str | None) -> dict[str, Any] | None:
        """Return the environment in which a version would be launched now; None where that is not known."""
        installed = self.installation(version)
        if not self.local:
            return None
        number, packages = known_versions(self.engine, installed, self.study.env)
        if self.installs(version):
            # Made to match its pins before any launch.
            number = pinned_version(self.engine, self.root)
            packages = packages if is_installed(self.study.engine, self.root) else {}
        image = image_identity(installed.container) if installed.container else None
        if installed.container and (number is None or image is None):
            return None
        return describe(self.engine.name, number, self.model, packages=packages, image=image)

    @cached_property
    def _smoke(self) -> dict[str, Any]:
        return smoke_request(self.study)

    @cached_property
    def _throughput(self) -> dict[str, Any]:
        return throughput_request(self.study)

    @cached_property
    def provided(self) -> list[str]:
        """Return the records that this machine has what a launch needs: the engine and the model.

        They lie among the results, so that a cache may be elsewhere on another machine.
        """
        names = ["engine.json", *(["model.json"] if self.study.model.package else [])]
        return [str(self.results / name) for name in names]

    def lacking(self) -> list[str]:
        """Return those records of ``provided`` that do not hold here: no such engine, no such model."""
        lacks = []
        unknown = [version for version in self.versions if version not in self._ready]
        self._ready |= {version for version in unknown if self._kept_flags(version) is not None}
        if len(self._ready) < len(self.versions):
            lacks.append(self.provided[0])
        if self.study.model.package and not Path(self.model).is_file():
            lacks.append(self.provided[1])
        return lacks

    @cached_property
    def phases(self) -> list[str]:
        """Return the phases this study runs; a pinned base needs no first phase."""
        first = [] if self.study.speculative_base else ["backends"]
        return first + (["speculative"] if self.study.speculations else [])

    @cached_property
    def decision_rules(self) -> str:
        """Return all that races, decision, charts and report depend on beyond their cells."""
        return canonical_json(
            {
                "made_by": [DECISION_SCHEMA, DERIVATION],
                "decision": self.study.decision.model_dump(mode="json"),
                "configurations": self.study.configurations,
                "speculations": self.study.speculations,
                "speculative_base": self.study.speculative_base,
            }
        )

    def cell(self, phase: str, configuration: str, round: str | int) -> Cell:
        """Return a cell of this study; raises UserError for one it does not define."""
        flags_of(self.study, phase, configuration)
        return Cell(self.study.name, phase, configuration, int(round))

    def check_stored(self) -> None:
        """Raise UserError where no race is stored: races say which of the stored cells are evidence."""
        races = self.results / "race"
        if not race_paths(self.results):
            raise UserError(
                f"{races}: no race files, so nothing tells which stored rounds are evidence; copy them with "
                "the cells, or run the study without frozen=true"
            )

    def race_file(self, phase: str, round_number: int) -> Path:
        """Return where a race's verdict is kept."""
        return self.results / "race" / f"{phase}.r{round_number}.json"

    def _wanted(self, stage: Stage, cell: Cell) -> str:
        """Return the fingerprint of a stage, which is the same in every round of a configuration."""
        key = (stage, cell.phase, cell.configuration)
        if key not in self._fingerprints:
            launch = launch_request(self.study, cell)
            self._fingerprints[key] = stage_fingerprint(stage, launch, self._smoke, self._throughput)
        return self._fingerprints[key]

    def asked(self, stage: Stage, cell: Cell) -> str:
        """Return all that a stage's result depends on, as canonical JSON."""
        work = {"smoke": self._smoke, "throughput": self._throughput}.get(stage, {})
        return canonical_json(
            {
                "cell": cell.as_json(),
                "fingerprint": self._wanted(stage, cell),
                "request": launch_request(self.study, cell),
                "work": work,
            }
        )

    @cached_property
    def host(self) -> str:
        """Return where things are on this machine, as canonical JSON; no result depends on it."""
        return canonical_json(
            {
                "python": str(engine_python(self.study.engine, None, self.root)),
                "model": self.model,
                "prompts": prompt_files(self.study),
                "preflight": self.study.preflight,
                "secrets": self.study.secrets,
                "launch_timeout_seconds": self.study.hosts.launch_timeout_seconds,
                "slot_wait_seconds": self.study.hosts.slot_wait_seconds,
            }
        )

    def stale(self, stage: Stage, cell: Cell) -> str | None:
        """Return why a stored stage file must be made anew, None where it holds or is missing."""
        judge = self._judges[self.study.version_of(cell.configuration)]
        why = judge.stale(cell.file(stage), self._wanted(stage, cell))
        if why is None and stage == "launch" and self.study.preflight == "warn":
            why = judge.refused_before(cell.file(stage))
        if why is None and stage == "launch":
            # Only another launch can tell whether a server that leaked will do so again.
            return judge.worth_retrying(cell.file("teardown"))
        return why

    def holds(self, cell: Cell) -> bool:
        """Return whether all stage files of a cell are there and none must be made anew."""
        return all(cell.file(stage).exists() and self.stale(stage, cell) is None for stage in STAGES)

    def contenders(self, phase: str, base: str | None) -> list[str]:
        """Return the configurations that start in a phase's first round."""
        if phase == "backends":
            return sorted(self.study.configurations)
        if base is None or not self.study.speculations:
            return []
        return [f"{base}+{name}" for name in [BASELINE, *sorted(self.study.speculations)]]

    def cells(self, phase: str, configurations: Iterable[str], round_number: int) -> list[Cell]:
        """Return the cells of some configurations in one round."""
        return [Cell(self.study.name, phase, name, round_number) for name in configurations]

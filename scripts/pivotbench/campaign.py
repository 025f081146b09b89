"""A study on this machine: its cells, what their stages are given, and which results still hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pivotbench.cells import (
    BASELINE,
    Cell,
    flags_of,
    launch_request,
    prompt_files,
    smoke_request,
    stage_fingerprint,
    throughput_request,
)
from pivotbench.engines import engine_python, get_engine
from pivotbench.files import canonical_json
from pivotbench.host import describe
from pivotbench.preflight import known_kinds
from pivotbench.provision import flags_file, model_path, pinned_version, requirements_file
from pivotbench.results import Stage
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

    @property
    def results(self) -> Path:
        """The study's folder of results, relative to the working directory."""
        return Path("results") / self.study.name

    @cached_property
    def python(self) -> Path:
        """The interpreter that runs the engine."""
        return engine_python(self.study.engine, self.study.python, self.root)

    @cached_property
    def model(self) -> str:
        """The model as the engine is given it: a path or a hub id."""
        return str(model_path(self.study.model))

    @cached_property
    def kinds(self) -> frozenset[str]:
        """Return what kind of model it is, as far as this machine has its config.json."""
        return known_kinds(self.model, self.study.model.revision)

    @cached_property
    def flags_file(self) -> Path:
        """The engine's own list of flags, read once."""
        return flags_file(self.study.engine, self.study.python, self.root)

    @cached_property
    def pins(self) -> list[str]:
        """Return the files whose change makes the engine's environment anew; none where it is the user's."""
        return [] if self.study.python else [str(requirements_file(self.study.engine, self.root))]

    @cached_property
    def _judge(self) -> Judge:
        engine, python = get_engine(self.study.engine), self.study.python
        version = engine.installed_version(python) if python else pinned_version(engine, self.root)
        present = describe(engine.name, version, self.model) if self.local else None
        return Judge(present, gpus=self.study.hosts.gpus, retry_all=self.retry_all)

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
        if not self.flags_file.is_file():
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
        """Return all that a race and the decision depend on beyond their cells."""
        return canonical_json(
            {
                "decision": self.study.decision.model_dump(mode="json"),
                "configurations": self.study.configurations,
                "speculations": self.study.speculations,
            }
        )

    def cell(self, phase: str, configuration: str, round: str | int) -> Cell:
        """Return a cell of this study; raises UserError for one it does not define."""
        flags_of(self.study, phase, configuration)
        return Cell(self.study.name, phase, configuration, int(round))

    def race_file(self, phase: str, round_number: int) -> Path:
        """Return where a race's verdict is kept."""
        return self.results / "race" / f"{phase}.r{round_number}.json"

    def asked(self, stage: Stage, cell: Cell) -> str:
        """Return all that a stage's result depends on, as canonical JSON."""
        launch = launch_request(self.study, cell)
        work = {"smoke": self._smoke, "throughput": self._throughput}.get(stage, {})
        return canonical_json(
            {
                "cell": cell.as_json(),
                "fingerprint": stage_fingerprint(stage, launch, self._smoke, self._throughput),
                "request": launch,
                "work": work,
            }
        )

    @cached_property
    def host(self) -> str:
        """Return where things are on this machine, as canonical JSON; no result depends on it."""
        return canonical_json(
            {
                "python": str(self.python),
                "model": self.model,
                "prompts": prompt_files(self.study),
                "preflight": self.study.preflight,
                "launch_timeout_seconds": self.study.hosts.launch_timeout_seconds,
                "slot_wait_seconds": self.study.hosts.slot_wait_seconds,
            }
        )

    def stale(self, stage: Stage, cell: Cell) -> str | None:
        """Return why a stored stage file must be made anew, None where it holds or is missing."""
        wanted = stage_fingerprint(stage, launch_request(self.study, cell), self._smoke, self._throughput)
        why = self._judge.stale(stage, cell.file(stage), wanted)
        if why is None and stage == "launch" and self.study.preflight == "warn":
            why = self._judge.refused_before(cell.file(stage))
        if why is None and stage == "launch":
            # Only another launch can tell whether a server that leaked will do so again.
            return self._judge.worth_retrying(cell.file("teardown"))
        return why

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

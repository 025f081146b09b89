"""Cells of a study: their folders, what each stage is asked to do, and its fingerprint.

What a stage is asked to do is plain JSON. It holds all that the stage's result depends on and
nothing else: equal content means an equal fingerprint, and a cell's files stay good. Where a
server runs (paths, time limits) is not part of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pivotbench.engines import own_engine
from pivotbench.errors import UserError
from pivotbench.files import fingerprint, sha256_of_file
from pivotbench.results import PHASES, STAGES, Stage
from pivotbench.study import VERSION, Study
from pivotbench.study.continuations import read_continuations
from pivotbench.study.fields import WITHOUT_SPECULATION

# Raised when a stage comes to measure something else, so that older results are made anew.
METHOD: dict[Stage, int] = {"launch": 1, "smoke": 3, "throughput": 5, "teardown": 1}

BASELINE = WITHOUT_SPECULATION


@dataclass(frozen=True, order=True)
class Cell:
    """One configuration in one round. ``<base>+none`` is the baseline of the speculative phase."""

    study: str
    phase: str
    configuration: str
    round: int

    @property
    def folder(self) -> Path:
        """The cell's folder, relative to the working directory."""
        return Path(f"results/{self.study}/{self.phase}/{self.configuration}/r{self.round}")

    def file(self, stage: Stage) -> Path:
        """The path of one stage's result."""
        return Path(f"results/{self.study}/{self.phase}/{self.configuration}/r{self.round}/{stage}.json")

    def as_json(self) -> dict[str, Any]:
        """The cell as it stands in its stage files."""
        return {
            "study": self.study,
            "phase": self.phase,
            "configuration": self.configuration,
            "round": self.round,
        }

    @property
    def label(self) -> str:
        """A short name for people: ``flash-on r2``."""
        return f"{self.configuration} r{self.round}"


def stage_files(cells: Iterable[Cell]) -> list[str]:
    """Return the paths of all stage files of ``cells``."""
    return [str(cell.file(stage)) for cell in cells for stage in STAGES]


def last_files(cells: Iterable[Cell]) -> list[str]:
    """Return the path of each cell's last stage: made after the others, it stands for all four."""
    return [str(cell.file(STAGES[-1])) for cell in cells]


def flags_of(study: Study, phase: str, configuration: str) -> dict[str, Any]:
    """Return the flags of a configuration: shared, then backend, then speculative.

    The version of the engine is not among them. Raises UserError for a configuration that the study does not
    define.
    """
    base, _, speculation = configuration.partition("+")
    if (phase == "speculative") != bool(speculation) or phase not in PHASES:
        raise UserError(
            f"results/{study.name}/{phase}/{configuration}: no such configuration; "
            "backends are named alone, speculative ones <backend>+<name>"
        )
    if base not in study.configurations:
        raise _unknown(study, phase, configuration, base, study.configurations)
    flags = {**study.serve, **study.configurations[base]}
    if speculation and speculation != BASELINE:
        if speculation not in study.speculations:
            raise _unknown(study, phase, configuration, speculation, study.speculations)
        flags |= study.speculations[speculation]
    flags.pop(VERSION, None)
    return flags


def _unknown(study: Study, phase: str, configuration: str, name: str, known: Iterable[str]) -> UserError:
    return UserError(
        f"results/{study.name}/{phase}/{configuration}: the study has no '{name}'; "
        f"it has {', '.join(sorted(known)) or 'none'}"
    )


def launch_request(study: Study, cell: Cell) -> dict[str, Any]:
    """Return what the launch of a cell depends on; ``python`` is None for the engine Pivotbench installs."""
    model, hosts = study.model, study.hosts
    return {
        "engine": study.engine,
        **own_engine(study.engine),
        **installation_request(study, study.version_of(cell.configuration)),
        "model": {
            "name": model.name,
            "path": model.path,
            "revision": model.revision,
            "sha256": model.sha256,
        },
        "flags": flags_of(study, cell.phase, cell.configuration),
        "env": dict(study.env),
        "gpus": hosts.gpus,
        **({"numa": True} if hosts.numa else {}),
    }


def installation_request(study: Study, version: str | None) -> dict[str, Any]:
    """Return where a version of the engine is: an interpreter, and its container where it is in one."""
    origin = study.versions[version] if version else study
    request: dict[str, Any] = {"python": str(origin.python) if origin.python else None}
    if origin.container is not None:
        request["container"] = asdict(origin.container.plain)
    return request


def smoke_request(study: Study) -> dict[str, Any]:
    """Return what the smoke stage depends on beyond the launch; continuations by their content."""
    request = study.smoke.model_dump(mode="json", exclude_none=True)
    if study.smoke.continuations is not None:
        request["continuations"] = read_continuations(study.smoke.continuations)
    if not study.smoke.speed_only:
        del request["speed_only"]
    return request


def throughput_request(study: Study) -> dict[str, Any]:
    """Return what the throughput stage depends on beyond launch and smoke.

    Prompt files count by content: their paths are added where the stage is run.
    """
    request = study.throughput.model_dump(mode="json", exclude_none=True)
    for name, workload in study.throughput.workloads.items():
        if workload.prompts is not None:
            request["workloads"][name]["prompts"] = sha256_of_file(workload.prompts)
        if workload.stop == "length":
            del request["workloads"][name]["stop"]
    request["seed"] = study.name
    if study.smoke.speed_only:
        request["speed_only"] = True
    return request


def prompt_files(study: Study) -> dict[str, str]:
    """Return each text workload's prompt file as an absolute path."""
    return {
        name: str(workload.prompts.resolve())
        for name, workload in study.throughput.workloads.items()
        if workload.prompts is not None
    }


def stage_fingerprint(
    stage: Stage,
    launch: dict[str, Any],
    smoke: dict[str, Any] | None = None,
    throughput: dict[str, Any] | None = None,
) -> str:
    """Return the fingerprint of a stage: its own request, chained to that of the stages before it."""
    chain: list[Any] = []
    for name, request in zip(STAGES, (launch, smoke, throughput, {}), strict=True):
        chain.append([name, METHOD[name], request])
        if name == stage:
            break
    return fingerprint(chain)

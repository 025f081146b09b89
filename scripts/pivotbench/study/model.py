"""The study: what to compare, how to measure it, and what decides.

Each class is one mapping of the YAML file; the descriptions are what editors and config/README.md show.
"""

from __future__ import annotations

import json
import shlex
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Field,
    PrivateAttr,
    WithJsonSchema,
    model_validator,
)

from pivotbench.engines import ENGINES, NAME_PATTERN, get_engine
from pivotbench.engines.endpoints import ENDPOINTS
from pivotbench.errors import UserError
from pivotbench.files import canonical_json, sha256_of_file
from pivotbench.study.backends import Backends, Configurations, Speculative
from pivotbench.study.environment import Secrets, Variables
from pivotbench.study.fields import (
    WITHOUT_SPECULATION,
    Flags,
    Name,
    Strict,
    StudyPath,
    check_name,
    refusal,
)
from pivotbench.study.sections import Decision, Hosts, Smoke
from pivotbench.study.served_model import ServedModel
from pivotbench.study.source import Source
from pivotbench.study.throughput import Throughput
from pivotbench.study.versions import VERSION, Container, ContainerKey, Version
from pivotbench.wording import KeyPath, listed, quoted, suggestion

# Linux hands over 128 KiB in one argument; the paths of this machine come to it.
MAX_REQUEST_BYTES = 64 << 10


def _check_engine(name: str) -> str:
    try:
        return get_engine(name).name
    except UserError as error:
        raise refusal(str(error)) from error


EngineName = Annotated[
    str,
    AfterValidator(_check_engine),
    WithJsonSchema(
        {"anyOf": [{"enum": sorted(ENGINES)}, {"type": "string", "pattern": f"^{NAME_PATTERN}$"}]}
    ),
]


class Study(Strict):
    """One comparison: a model, an engine, the configurations, the measurement and the decision."""

    name: Name = Field(description="Name of the study; its results go to a folder of that name in results/.")
    engine: EngineName = Field(
        description="Kind of server to start; one of your own is in config/engines/NAME.py, see "
        "[docs/engines.md](../docs/engines.md)."
    )
    python: StudyPath | None = Field(
        default=None,
        description="Interpreter of an environment that has the engine, relative to the study file. "
        "Default: the one Pivotbench makes.",
    )
    container: ContainerKey = Field(
        default=None,
        description="Container image that has the engine, instead of python; plain text is short for its "
        "image.",
    )
    versions: dict[str, Version] = Field(
        default_factory=dict,
        description="Versions of the engine by name, to compare with each other: a configuration says which "
        "one it runs by the key version among its flags.",
    )
    env: Variables = Field(default_factory=dict, description="Environment variables of the server.")
    secrets: Secrets = Field(
        default_factory=list,
        description="Names of variables of your own environment that hold keys or tokens the server needs, "
        "such as HF_TOKEN: they must be set, and their values stand in no file.",
    )
    model: ServedModel = Field(description="Model to serve; plain text is short for its path.")
    serve: Flags = Field(
        default_factory=dict,
        description="Flags of every launch, as the engine's command line names them, without dashes. "
        "true gives a bare flag, false leaves it out.",
    )
    backends: Backends = Field(description="Configurations to compare in phase one.")
    speculative: Speculative | None = Field(
        default=None, description="Speculative configurations to compare in phase two, on the winner."
    )
    smoke: Smoke = Field(description="Questions every server must answer sensibly before it is measured.")
    throughput: Throughput = Field(description="How speed is measured.")
    decision: Decision = Field(description="What decides.")
    hosts: Hosts = Field(description="GPUs and waiting times of one server.")
    preflight: Literal["warn", "refuse"] = Field(
        default="warn",
        description="What becomes of a configuration that is expected to fail at launch, since its model "
        "does not fit or a kernel does not exist on the GPU: warn and try it, or refuse to launch it.",
    )

    _source: Source | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _fits_a_command_line(self) -> Study:
        """Refuse what Linux could not hand to a stage, which is told all of its work in one argument."""
        parts: dict[KeyPath, Any] = {
            ("smoke", "prompts"): [prompt.model_dump(exclude_none=True) for prompt in self.smoke.prompts],
            ("throughput", "workloads"): self.throughput.model_dump(mode="json", exclude_none=True),
            ("env",): self.env,
            ("serve",): self.serve,
            ("backends",): max(self.configurations.values(), key=lambda flags: len(canonical_json(flags))),
            ("speculative",): max(
                self.speculations.values(), key=lambda flags: len(canonical_json(flags)), default={}
            ),
        }
        sizes = {at: len(shlex.quote(canonical_json(part))) for at, part in parts.items()}
        if sum(sizes.values()) > MAX_REQUEST_BYTES:
            largest = max(sizes, key=sizes.__getitem__)
            message = f"takes {sizes[largest] >> 10} KiB of a command line, and a whole cell has"
            raise refusal(f"{message} {MAX_REQUEST_BYTES >> 10} at most; shorten it", *largest)
        return self

    @model_validator(mode="after")
    def _secrets_are_not_written_out(self) -> Study:
        for index, name in enumerate(self.secrets):
            if name in self.env:
                raise refusal(f"{quoted(name)} is written out in env; keep one", "secrets", index)
        return self

    @model_validator(mode="after")
    def _names_exist(self) -> Study:
        for value, at in (
            (self.speculative_base, ("speculative", "on")),
            (self.decision.reference, ("decision", "reference")),
        ):
            if value is not None and value not in self.configurations:
                raise refusal(
                    f"no configuration {quoted(value)}; {suggestion(value, list(self.configurations))}", *at
                )
        if self.speculative_base is not None and self.decision.reference not in (None, self.speculative_base):
            message = f"only {quoted(self.speculative_base)} is launched, for speculative.on pins it"
            raise refusal(message, "decision", "reference")
        if self.decision.budget is not None and self.hosts.gpus == 0:
            raise refusal("a budget in GPU-hours needs a GPU; hosts.gpus is 0", "decision", "budget")
        self._check_hypotheses()
        self.decision.metric.check(self.throughput, "decision", "metric")
        return self

    def _check_hypotheses(self) -> None:
        backends, drafting = list(self.configurations), [WITHOUT_SPECULATION, *self.speculations]
        for index, stated in enumerate(self.decision.hypotheses):
            at = ("decision", "hypotheses", index)
            phase = next((names for names in (backends, drafting) if stated.a in names), None)
            if phase is None:
                known = [*backends, *drafting]
                raise refusal(f"no configuration {quoted(stated.a)}; {suggestion(stated.a, known)}", *at, "a")
            if stated.b not in phase or stated.b == stated.a:
                others = [name for name in phase if name != stated.a]
                message = f"{quoted(stated.a)} cannot be compared with {quoted(stated.b)}"
                raise refusal(f"{message}; {suggestion(stated.b, others)}", *at, "b")

    @model_validator(mode="after")
    def _versions_exist(self) -> Study:
        if self.python is not None and self.container is not None:
            raise refusal("give either python or container", "container")
        contained: list[tuple[KeyPath, Container | None]] = [(("container",), self.container)]
        for name, version in self.versions.items():
            check_name(name, "versions", name)
            contained.append((("versions", name, "container"), version.container))
        for place, container in contained:
            if container is not None and not get_engine(self.engine).in_containers:
                raise refusal(f"{self.engine} is started without a container; give python", *place)
        for at, value in self._named_versions():
            if at[0] == "speculative":
                raise refusal("speculation runs on its backend's version; remove it", *at)
            if str(value) not in self.versions:
                known = suggestion(str(value), sorted(self.versions))
                raise refusal(f"no version {quoted(value)} under versions; {known}", *at)
        used = {self.version_of(name) for name in self.configurations}
        for name in self.versions:
            if name not in used:
                raise refusal("no configuration runs it; name it by version, or remove it", "versions", name)
        return self

    def _named_versions(self) -> list[tuple[KeyPath, Any]]:
        flags: list[tuple[KeyPath, dict[str, Any]]] = [
            (("serve",), self.serve),
            *((("backends", name), flags) for name, flags in self.backends.named.items()),
            *((("speculative", name), flags) for name, flags in self.speculations.items()),
        ]
        named: list[tuple[KeyPath, Any]] = [((*at, VERSION), f[VERSION]) for at, f in flags if VERSION in f]
        values = self.backends.matrix.get(VERSION, [])
        return named + [(("backends", "matrix", VERSION, n), value) for n, value in enumerate(values)]

    def version_of(self, configuration: str) -> str | None:
        """Return the version that a configuration or its base names; None: the study's own engine."""
        base = configuration.partition("+")[0]
        named = self.configurations[base].get(VERSION, self.serve.get(VERSION))
        return None if named is None else str(named)

    @model_validator(mode="after")
    def _engine_has_endpoint(self) -> Study:
        endpoint, dialects = self.throughput.endpoint, get_engine(self.engine).dialects
        if endpoint is not None and ENDPOINTS[endpoint] not in dialects:
            there = listed([name for name, dialect in ENDPOINTS.items() if dialect in dialects])
            message = f"{self.engine} has no endpoint {quoted(endpoint)}; it has {there}"
            raise refusal(message, "throughput", "endpoint")
        return self

    @property
    def source(self) -> Source | None:
        """The file the study was read from, with its lines; None where it was built from data."""
        return self._source

    @property
    def configurations(self) -> Configurations:
        """Flags of every configuration of phase one by name, sorted by name, without ``serve``."""
        return self.backends.configurations

    @property
    def speculative_base(self) -> str | None:
        """The configuration that speculation is pinned to, or None for phase one's winner."""
        return self.speculative.on if self.speculative else None

    @property
    def speculations(self) -> Configurations:
        """Flags of every speculative configuration by name, sorted by name, without its base's."""
        return dict(sorted(self.speculative.named.items())) if self.speculative else {}

    def canonical(self) -> dict[str, Any]:
        """Return the study as plain data that is equal for studies that ask for the same.

        The order of keys, how configurations are written, where the files lie and which interpreter runs
        make no difference; files of prompts and continuations stand by the SHA-256 of their content.
        """
        aside = {"python", "secrets", "backends", "speculative"}
        data = self.model_dump(mode="json", exclude_none=True, exclude=aside)
        for name, workload in self.throughput.workloads.items():
            if workload.prompts is not None:
                data["throughput"]["workloads"][name]["prompts"] = sha256_of_file(workload.prompts)
        if self.smoke.continuations is not None:
            data["smoke"]["continuations"] = sha256_of_file(self.smoke.continuations)
        data["configurations"] = self.configurations
        data["speculative_base"] = self.speculative_base
        data["speculations"] = self.speculations
        plain: dict[str, Any] = json.loads(canonical_json(data))
        return plain

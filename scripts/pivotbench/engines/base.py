"""What Pivotbench needs to know of one kind of server: how to start it, ask it, and read it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from pivotbench.engines.catalogue import FlagCatalogue
from pivotbench.engines.counters import DraftCounters
from pivotbench.engines.endpoints import Dialect
from pivotbench.engines.forced import Forced
from pivotbench.engines.packages import package_version
from pivotbench.engines.parser_flags import ask_parser
from pivotbench.engines.probing import Probe, openai_probe
from pivotbench.engines.spelling import Spelling
from pivotbench.machine.containers import Container

FlagValue = str | int | float | bool | list[str | int | float]
# One of the likeliest tokens at a place: id, text, logprob; None where the server does not tell.
Alternative = tuple[int | None, str | None, float | None]


@dataclass(frozen=True)
class Command:
    """A launch, in two parts: what the study asked for and what is added to every launch alike."""

    study: tuple[str, ...]
    added: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def argv(self) -> tuple[str, ...]:
        """The command line as it is executed."""
        return self.study + self.added


@dataclass(frozen=True)
class Change:
    """A setting the engine chose or changed by itself, as it says: where, for which model, on which ranks.

    ``flag`` is None where a line of the log tells of it in words alone. ``ranks`` is empty for all of them.
    """

    flag: str | None
    effective: Any
    source: str
    model: Literal["target", "draft"] = "target"
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True)
class LaunchPhase:
    """One part of a launch read from the log, e.g. weights loaded or graphs captured."""

    name: str
    seconds: float


class Engine(ABC):
    """One kind of server: what must be told of it, and what may be. Implementations are stateless.

    A name, a package, ``command`` and either ``parser`` or ``read_flags`` make an engine. Everything else
    has a default that tells nothing; docs/engines.md says what is lost with each.
    """

    name: str
    package: str  # the distribution that carries the engine's version
    parser: str = ""  # Python that leaves the engine's argparse parser as ``parser``
    companions: tuple[str, ...] = ()  # distributions that do its work, recorded beside it
    dialects: tuple[Dialect, ...] = ("openai-chat", "openai-completions")  # the first is the usual one
    stop_grace_seconds: float = 10.0  # between SIGTERM and SIGKILL
    in_containers: bool = False  # whether it may be started inside an image
    simulates: str | None = None  # the variable that sets how many drafts are accepted, whatever they are
    spelling: Spelling = Spelling()  # how it names what limits its speed
    slot_caches: Mapping[str, str] = MappingProxyType({})  # by variable: folders of kernels not to be shared

    @abstractmethod
    def command(
        self, python: str, model: str, flags: Mapping[str, FlagValue], *, port: int, served_name: str
    ) -> Command:
        """Return the launch command for a model and flags, listening on loopback at ``port``."""

    @property
    def reserved_flags(self) -> frozenset[str]:
        """The flags that are part of every launch; a study may not give them, under any of their names."""
        words = self.command("", "", {}, port=0, served_name="").argv
        return frozenset(word.removeprefix("--") for word in words if word.startswith("--"))

    def installed_version(self, python: Path) -> str | None:
        """Return the engine's version from package metadata, or None where it is not installed.

        No interpreter is started: this is asked at every parse.
        """
        return package_version(python, self.package)

    def read_flags(
        self, python: Path, env: Mapping[str, str], container: Container | None = None
    ) -> FlagCatalogue:
        """Ask the engine for its flags, under these variables; no GPU is touched. Raises UserError."""
        return ask_parser(self.name, self.parser, (self.package, *self.companions), python, env, container)

    def probe(self, url: str, served_name: str, *, timeout_seconds: float) -> Probe:
        """Ask for a real generation; ready only if the server proves to be ``served_name``."""
        return openai_probe(url, served_name, self.dialects[0], timeout_seconds=timeout_seconds)

    def server_info(self, url: str, log: Sequence[str] = ()) -> dict[str, Any]:  # noqa: ARG002
        """Return the settings the running server reports as in effect; {} where it reports none.

        They are named as flags; ``log`` helps where the server states a setting in its log alone.
        """
        return {}

    def changes(self, effective: Mapping[str, Any], log: Sequence[str]) -> list[Change]:  # noqa: ARG002
        """Return what a ready server says it chose or changed by itself, from its settings and its log."""
        return []

    def rank_differences(self, effective: Mapping[str, Any]) -> dict[str, list[Any]]:  # noqa: ARG002
        """Return the settings in which data-parallel ranks differ, with the value on each."""
        return {}

    def launch_phases(self, log: Sequence[str]) -> list[LaunchPhase]:  # noqa: ARG002
        """Return the launch's phases in order, timed from the server's own log lines."""
        return []

    def draft_counters(self, url: str) -> DraftCounters | None:  # noqa: ARG002
        """Return what the running server has counted of its drafts; None where it does not tell."""
        return None

    def requests_held(self, url: str, timeout_seconds: float) -> int | None:  # noqa: ARG002
        """Return how many requests the running server works on or holds back; None where it does not tell."""
        return None

    def teacher_logprobs(self, url: str, prompt: str, continuation: str) -> Forced:  # noqa: ARG002
        """Return the log probabilities the running server gives a continuation's first tokens.

        Prompt and continuation are plain text, put into no chat form. Never raises: what kept the server
        from telling is in the answer.
        """
        return Forced(None, why=f"engine {self.name} is not asked for log probabilities of a given text")


def simulates_drafts(engine: Engine, env: Mapping[str, Any]) -> bool:
    """Return whether a server with these variables accepts drafts by a set length, whatever they are."""
    try:
        return engine.simulates is not None and float(env.get(engine.simulates, 0)) > 0
    except ValueError:
        return False


def flags_to_argv(flags: Mapping[str, FlagValue]) -> tuple[str, ...]:
    """Return flags as arguments, sorted by name so that YAML order never matters.

    ``true`` gives a bare flag, ``false`` leaves it out, a list follows its flag value by value.
    """
    argv: list[str] = []
    for name in sorted(flags):
        value = flags[name]
        if value is False:
            continue
        argv.append(f"--{name}")
        if value is True:
            continue
        argv.extend(str(v) for v in value) if isinstance(value, list) else argv.append(str(value))
    return tuple(argv)

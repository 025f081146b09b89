"""What Pivotbench needs to know of one kind of server: how to start it, ask it, and read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from pivotbench.engines.counters import DraftCounters
from pivotbench.engines.forced import Forced
from pivotbench.engines.spelling import Spelling
from pivotbench.machine.containers import Container

FlagValue = str | int | float | bool | list[str | int | float]
Dialect = Literal["openai-chat", "openai-completions", "sglang-generate"]
# One of the likeliest tokens at a place: id, text, logprob; None where the server does not tell.
Alternative = tuple[int | None, str | None, float | None]

# What a study calls each dialect.
ENDPOINTS: dict[str, Dialect] = {
    "chat": "openai-chat",
    "completions": "openai-completions",
    "native": "sglang-generate",
}


@dataclass(frozen=True)
class FlagSpec:
    """One flag as the engine itself declares it; names are written without leading dashes.

    ``setting``: the name under which the running server reports it. ``stores``: the value it stands for
    there, where that is another than the one given. ``deprecated``: what the engine says to use instead.
    """

    name: str
    aliases: tuple[str, ...] = ()
    choices: tuple[str, ...] | None = None
    takes_value: bool = True
    many: bool = False
    help: str = ""
    setting: str | None = None
    stores: str | int | float | bool | None = None
    deprecated: str | None = None


@dataclass(frozen=True)
class FlagCatalogue:
    """The flags one installed version of an engine accepts, and the versions of the packages beneath it."""

    engine: str
    version: str
    flags: tuple[FlagSpec, ...]
    packages: Mapping[str, str] = field(default_factory=dict)

    def find(self, name: str) -> FlagSpec | None:
        """Return the flag of this name or alias."""
        return next((f for f in self.flags if name == f.name or name in f.aliases), None)


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
class Probe:
    """What answered at the server's address: nothing usable yet, our server, or another one."""

    state: Literal["loading", "ready", "stranger"]
    detail: str = ""


@dataclass(frozen=True)
class LaunchPhase:
    """One part of a launch read from the log, e.g. weights loaded or graphs captured."""

    name: str
    seconds: float


class Engine(Protocol):
    """One kind of server. Implementations are stateless."""

    name: str
    dialects: tuple[Dialect, ...]  # what it answers; the first is used where a study names none
    stop_grace_seconds: float
    package: str  # the distribution that carries the engine's version
    companions: tuple[str, ...]  # distributions that do its work, recorded beside it
    reserved_flags: frozenset[str]  # the ones Pivotbench sets itself; a study may not
    spelling: Spelling  # how it names what limits its speed
    slot_caches: Mapping[str, str]  # folders of kernels that servers may not share, by variable
    simulates: (
        str | None
    )  # the environment variable that sets how many drafts are accepted, whatever they are

    def command(
        self,
        python: str,
        model: str,
        flags: Mapping[str, FlagValue],
        *,
        port: int,
        served_name: str,
    ) -> Command:
        """Return the launch command for a model and flags, listening on loopback at ``port``."""
        ...

    def installed_version(self, python: Path) -> str | None:
        """Return the engine's version from package metadata, or None where it is not installed.

        No interpreter is started: this is asked at every parse.
        """
        ...

    def read_flags(
        self, python: Path, env: Mapping[str, str], container: Container | None = None
    ) -> FlagCatalogue:
        """Ask the engine for its flags, under these variables; no GPU is touched. Raises UserError."""
        ...

    def probe(self, url: str, served_name: str, *, timeout_seconds: float) -> Probe:
        """Ask for a real generation; ready only if the server proves to be ``served_name``."""
        ...

    def server_info(self, url: str, log: Sequence[str] = ()) -> dict[str, Any]:
        """Return the settings the running server reports as in effect; {} where it reports none.

        They are named as flags; ``log`` helps where the server states a setting in its log alone.
        """
        ...

    def changes(self, effective: Mapping[str, Any], log: Sequence[str]) -> list[Change]:
        """Return what a ready server says it chose or changed by itself, from its settings and its log."""
        ...

    def rank_differences(self, effective: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Return the settings in which data-parallel ranks differ, with the value on each."""
        ...

    def launch_phases(self, log: Sequence[str]) -> list[LaunchPhase]:
        """Return the launch's phases in order, timed from the server's own log lines."""
        ...

    def draft_counters(self, url: str) -> DraftCounters | None:
        """Return what the running server has counted of its drafts; None where it does not tell."""
        ...

    def teacher_logprobs(self, url: str, prompt: str, continuation: str) -> Forced:
        """Return the log probabilities the running server gives a continuation's first tokens.

        Prompt and continuation are plain text, put into no chat form. Never raises: what kept the server
        from telling is in the answer.
        """
        ...


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

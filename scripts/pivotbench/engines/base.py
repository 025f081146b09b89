"""What Pivotbench needs to know of one kind of server: how to start it, ask it, and read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from pivotbench.engines.counters import DraftCounters
from pivotbench.engines.forced import Forced
from pivotbench.engines.spelling import Spelling

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
    """One flag as the engine itself declares it; names are written without leading dashes."""

    name: str
    aliases: tuple[str, ...] = ()
    choices: tuple[str, ...] | None = None
    takes_value: bool = True
    many: bool = False
    help: str = ""


@dataclass(frozen=True)
class FlagCatalogue:
    """The flags one installed version of an engine accepts."""

    engine: str
    version: str
    flags: tuple[FlagSpec, ...]

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
    reserved_flags: frozenset[str]  # the ones Pivotbench sets itself; a study may not
    spelling: Spelling  # how it names what limits its speed
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

    def read_flags(self, python: Path) -> FlagCatalogue:
        """Ask the engine for its flags once; no GPU is touched. Raises UserError."""
        ...

    def probe(self, url: str, served_name: str, *, timeout_seconds: float) -> Probe:
        """Ask for a real generation; ready only if the server proves to be ``served_name``."""
        ...

    def server_info(self, url: str, log: Sequence[str] = ()) -> dict[str, Any]:
        """Return the settings the running server reports as in effect; {} where it reports none.

        They are named as flags; ``log`` helps where the server states a setting in its log alone.
        """
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

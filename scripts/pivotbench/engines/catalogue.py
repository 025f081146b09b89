"""The flags of one installed version of an engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


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

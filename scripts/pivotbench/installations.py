"""One version of an engine: an environment of this machine or a container image, and what is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pivotbench.engines import own_engine
from pivotbench.engines.base import Engine
from pivotbench.engines.catalogue import FlagCatalogue, FlagSpec
from pivotbench.engines.packages import package_stamp, versions_beside
from pivotbench.files import fingerprint, read_json, write_json
from pivotbench.machine import containers
from pivotbench.machine.cache import cache_folder
from pivotbench.machine.containers import Container

# Raised when more is kept of a flag.
_FORM = 2


@dataclass(frozen=True)
class Installation:
    """Where one version of an engine is: an interpreter, on this machine or inside a container image."""

    python: str
    container: Container | None = None

    @classmethod
    def of_request(cls, request: Mapping[str, Any], ours: str) -> Installation:
        """Return the installation a launch asks for; ``ours`` is the interpreter Pivotbench made."""
        container = Container.from_json(request.get("container"))
        return cls(containers.PYTHON if container else request["python"] or ours, container)

    def identity(self, engine: Engine) -> list[Any] | None:
        """Return what changes when this installation does; None where it is not on this machine."""
        if self.container is None:
            stamp = package_stamp(Path(self.python), engine.package)
            return None if stamp is None else [self.python, *stamp]
        image = containers.image_identity(self.container)
        return None if image is None else [self.container.runtime, self.container.image, image]


def flags_file(engine: Engine, installed: Installation, env: Mapping[str, str]) -> Path | None:
    """Return where this very installation's list of flags is kept; None where it is not on this machine.

    ``env`` are the study's variables: an engine may offer other choices under other ones. A file of one's own
    that defines the engine says how its list is read.
    """
    identity = installed.identity(engine)
    if identity is None:
        return None
    read = [_FORM, identity, dict(env), *own_engine(engine.name).values()]
    return cache_folder() / "flags" / f"{engine.name}-{fingerprint(read)}.json"


def read_flags(engine: Engine, installed: Installation, env: Mapping[str, str]) -> FlagCatalogue:
    """Return an installation's flags, asked for once and then kept; raises UserError."""
    kept = kept_flags(engine, installed, env)
    if kept is not None:
        return kept
    if installed.container is not None:
        containers.fetch_image(installed.container)
    catalogue = engine.read_flags(Path(installed.python), env, installed.container)
    path = flags_file(engine, installed, env)
    if path is not None:
        write_catalogue(path, catalogue)
    return catalogue


def kept_flags(engine: Engine, installed: Installation, env: Mapping[str, str]) -> FlagCatalogue | None:
    """Return an installation's flags where they were read before."""
    path = flags_file(engine, installed, env)
    try:
        return read_catalogue(path) if path is not None else None
    except (OSError, ValueError, KeyError):
        return None


def known_versions(
    engine: Engine, installed: Installation, env: Mapping[str, str]
) -> tuple[str | None, dict[str, str]]:
    """Return the engine's version and those of the packages that do its work, without starting anything.

    Of an image they are known once its flags were read.
    """
    if installed.container is None:
        python = Path(installed.python)
        packages = versions_beside(python, engine.package, engine.companions)
        return engine.installed_version(python), packages
    kept = kept_flags(engine, installed, env)
    return (kept.version, dict(kept.packages)) if kept else (None, {})


def read_catalogue(path: Path) -> FlagCatalogue:
    """Return the flags kept in ``path``; raises OSError, ValueError or KeyError where it holds none."""
    data = read_json(path)
    flags = tuple(
        FlagSpec(
            name=flag["name"],
            aliases=tuple(flag["aliases"]),
            choices=None if flag["choices"] is None else tuple(flag["choices"]),
            takes_value=flag["takes_value"],
            many=flag["many"],
            help=flag["help"],
            setting=flag["setting"],
            stores=flag["stores"],
            deprecated=flag["deprecated"],
        )
        for flag in data["flags"]
    )
    return FlagCatalogue(data["engine"], data["version"], flags, data["packages"])


def write_catalogue(path: Path, catalogue: FlagCatalogue) -> None:
    """Keep an engine's flags in ``path`` as JSON."""
    write_json(path, asdict(catalogue))

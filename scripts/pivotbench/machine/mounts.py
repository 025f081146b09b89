"""What a server in a container sees of the host: its model, the files its flags name, and caches."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pivotbench.machine.cache import cache_folder


@dataclass(frozen=True)
class Mount:
    """A path inside, and the ``source`` of the host that is seen there, by default at the same path.

    Files a server only reads are read-only.
    """

    path: Path
    read_only: bool
    source: Path | None = None


def mounts_for(runtime: str, model: str, flags: Mapping[str, Any], env: Mapping[str, str]) -> list[Mount]:
    """Return what a server must see of the host: its model, files its flags name, hub and kernel caches.

    Apptainer shows it the caller's home, where its kernel caches are, by itself. Where a model's files are
    links, as in the hub's cache, the folders they lead to are seen as well.
    """
    values = [v for value in flags.values() for v in (value if isinstance(value, list) else [value])]
    named = [Path(str(v)) for v in [model, *values] if isinstance(v, str) and v.startswith("/")]
    seen: dict[Path, Path] = {}
    for path in named:
        if path.exists():
            seen[path] = path
            for file in path.iterdir() if path.is_dir() else ():
                if file.exists():
                    seen |= {place: source for place, source in _led_to(file) if place not in seen}
    caches = {hub_cache(env)} | ({home()} if runtime == "docker" else set())
    return [
        *(Mount(path, True, source) for path, source in sorted(seen.items()) if path not in caches),
        *(Mount(path, read_only=False) for path in sorted(caches)),
    ]


def _led_to(file: Path) -> Iterator[tuple[Path, Path]]:
    """Yield the folder each link on the way to a file leads to: where it is sought inside, where it is here.

    A folder that is a link here is none inside, where ``..`` therefore leads elsewhere.
    """
    inside = file
    while file.is_symlink():
        target = file.readlink()
        inside = Path(os.path.normpath(inside.parent / target))
        file = file.parent.resolve() / target
        yield inside.parent, file.parent.resolve()


def hub_cache(env: Mapping[str, str]) -> Path:
    """Return where the model hub's files are kept, as the study or the machine says."""
    told = env.get("HF_HOME") or os.environ.get("HF_HOME")
    return Path(told) if told else Path.home() / ".cache" / "huggingface"


def home() -> Path:
    """Return the folder that is HOME inside docker's containers: compiled kernels outlive a launch there."""
    return cache_folder().absolute() / "containers"


def prepare(mounts: Iterable[Mount]) -> None:
    """Make the caches that are to be mounted, where this is the first server to use them."""
    for mount in mounts:
        if not mount.read_only:
            mount.path.mkdir(parents=True, exist_ok=True)

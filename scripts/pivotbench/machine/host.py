"""The machine a cell ran on, and whether another one would be the same to it."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pivotbench.files import fingerprint
from pivotbench.machine.gpu import driver_version, visible_gpus


def cpu_model() -> str:
    """Return the processor's name as the kernel gives it, or the architecture."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def model_revision(model: str) -> str | None:
    """Return a short identity of a model's files: names, sizes and config; None for a hub id.

    Reading tens of gigabytes at every parse is out of the question; a changed size, a renamed
    shard or another config is what an exchanged model shows.
    """
    path = Path(model)
    if path.is_file():
        return fingerprint([path.name, path.stat().st_size])
    if path.is_dir():
        files = sorted((p.name, p.stat().st_size) for p in path.iterdir() if p.is_file())
        config = path / "config.json"
        # Bytes that are no UTF-8 are kept as such: whether the file can be used is the engine's to say.
        text = config.read_text(encoding="utf-8", errors="surrogateescape") if config.is_file() else None
        return fingerprint([files, text])
    return None


# What tells one version of an engine from another; a study may compare several.
ENGINE_PARTS = ("engine_version", "packages", "image")


def describe(
    engine: str,
    engine_version: str | None,
    model: str,
    *,
    packages: Mapping[str, str] | None = None,
    image: str | None = None,
) -> dict[str, Any]:
    """Return the environment of this node for a launch: engine, GPUs, driver, processor, model.

    ``packages``: versions of what the engine works with; ``image``: identity of its container image.
    """
    return {
        "engine": engine,
        "engine_version": engine_version,
        **({"packages": dict(packages)} if packages else {}),
        **({"image": image} if image else {}),
        "gpus": [
            {"uuid": g.uuid, "name": g.name, "memory_mib": g.memory_mib, "compute": g.compute_capability}
            for g in visible_gpus()
        ],
        "driver": driver_version(),
        "cpu_model": cpu_model(),
        "cores": os.cpu_count(),
        "host": platform.node(),
        "system": f"{platform.system()} {platform.release()}",
        "model": model,
        "model_revision": model_revision(model),
    }


def comparable_part(environment: dict[str, Any], *, gpus: int) -> dict[str, Any]:
    """Return what must be equal for two measurements to be compared, for a server on ``gpus`` GPUs.

    Without GPUs the processor decides; with GPUs their model, their number and the driver.
    """
    part: dict[str, Any] = {
        "engine": environment.get("engine"),
        "model_revision": environment.get("model_revision"),
        **{name: environment.get(name) for name in ENGINE_PARTS},
    }
    if gpus:
        names = sorted(g["name"] for g in environment.get("gpus", ()))
        return part | {"gpus": names, "driver": environment.get("driver")}
    return part | {"cpu_model": environment.get("cpu_model"), "cores": environment.get("cores")}


def difference(stored: dict[str, Any], present: dict[str, Any], *, gpus: int) -> str | None:
    """Return in words the first way in which a stored environment is not the present one."""
    before, after = comparable_part(stored, gpus=gpus), comparable_part(present, gpus=gpus)
    for name, value in after.items():
        # Results older than the record of packages say nothing of them.
        known = name != "packages" or (before.get(name) and value)
        if known and before.get(name) != value:
            return f"{name.replace('_', ' ')} was {before.get(name)}, is {value}"
    return None

"""Compiled kernels of a slot: kept from launch to launch, apart from those of other slots and versions.

Most caches are safe to share between servers at work and stay where their makers put them: Triton,
TorchInductor and DeepGEMM write under another name and rename, by a hash of all that a kernel depends on, and
CUDA's own is locked by the driver. Three kinds are not, and those an engine names (Engine.slot_caches):

- PyTorch's extensions are guarded by a file that is there or not. A server that is killed while it compiles
  leaves it, and every later one waits for ever (https://github.com/pytorch/pytorch/issues/189245).
- TVM's and SGLang's modules may be found, and loaded, while another server still writes them.
- FlashInfer lets one server at a time compile a module, so that one's launch would be timed by the other's.

The folder is one of the slot (the set of GPUs) and not of the launch: compiling takes minutes, and whoever
holds the slot's devices is alone in it. So a guard found at a launch is of nobody alive, and goes. No two
GPUs have one UUID; a slot without any is told apart by the host's name, for nodes may share one home.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from pivotbench.files import fingerprint
from pivotbench.machine.cache import cache_folder
from pivotbench.machine.gpu import CPU

# The guard of a build folder (torch.utils.file_baton).
GUARD = "lock"


def slot_folder(engine: str, identity: Any, devices: Collection[str]) -> Path:
    """Return where the version of an engine with this identity keeps its kernels on these devices."""
    version = f"{engine}-{fingerprint(identity)}"
    slot = sorted(f"cpu of {platform.node()}" if device == CPU else device for device in devices)
    return cache_folder().absolute() / "kernels" / version / fingerprint(slot)


def slot_variables(caches: Mapping[str, str], folder: Path, study: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that put an engine's caches into a slot's folder.

    ``caches``: sub-folders by variable. What the study or the user's environment sets stays as it is.
    """
    told = study.keys() | os.environ.keys()
    return {name: str(folder / place) for name, place in caches.items() if name not in told}


def prepare(variables: Mapping[str, str]) -> None:
    """Make the folders, for who holds the slot; remove guards that killed servers left. Raises OSError."""
    for place in map(Path, variables.values()):
        place.mkdir(parents=True, exist_ok=True)
        for guard in place.rglob(GUARD):
            if guard.is_file():
                guard.unlink(missing_ok=True)

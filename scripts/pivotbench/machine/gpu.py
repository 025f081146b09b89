"""GPUs by NVML: which there are, what they hold, who uses them. Without NVML there are none."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

MIB = 1 << 20
# The device of a server without GPUs, among the UUIDs of those that have some.
CPU = "cpu"


def gpus_of(devices: Iterable[str]) -> list[str]:
    """Return the GPUs among the devices of a server, by UUID."""
    return [device for device in devices if device != CPU]


@dataclass(frozen=True)
class Gpu:
    """One GPU; ``index`` is NVML's, in PCI bus order."""

    uuid: str
    name: str
    index: int
    memory_mib: int
    compute_capability: str


@contextmanager
def nvml() -> Iterator[Any]:
    """Give the initialised NVML module, or None where no GPU can be used."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # no driver, no library, no permission: all mean that no GPU can be used
        yield None
        return
    try:
        yield pynvml
    finally:
        pynvml.nvmlShutdown()


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def visible_gpus() -> list[Gpu]:
    """Return the host's GPUs, narrowed by CUDA_VISIBLE_DEVICES (indices or UUIDs) where it is set."""
    with nvml() as library:
        if library is None:
            return []
        gpus = []
        for index in range(library.nvmlDeviceGetCount()):
            device = library.nvmlDeviceGetHandleByIndex(index)
            major, minor = library.nvmlDeviceGetCudaComputeCapability(device)
            gpus.append(
                Gpu(
                    uuid=_text(library.nvmlDeviceGetUUID(device)),
                    name=_text(library.nvmlDeviceGetName(device)),
                    index=index,
                    memory_mib=library.nvmlDeviceGetMemoryInfo(device).total // MIB,
                    compute_capability=f"{major}.{minor}",
                )
            )
    told = os.environ.get("CUDA_VISIBLE_DEVICES")
    if told is None:
        return gpus
    wanted = [entry.strip() for entry in told.split(",") if entry.strip()]
    return [g for g in gpus if str(g.index) in wanted or any(w and g.uuid.startswith(w) for w in wanted)]


def device_variables(gpus: Sequence[Gpu], uuids: Collection[str]) -> dict[str, str]:
    """Return the environment variables that show a process these GPUs alone.

    By number and not by UUID: SGLang reads the numbers out of CUDA_VISIBLE_DEVICES where several GPUs work
    together. NVML counts in PCI bus order, so CUDA is told to do the same.
    """
    numbers = sorted(gpu.index for gpu in gpus if gpu.uuid in uuids)
    return {"CUDA_VISIBLE_DEVICES": ",".join(map(str, numbers)), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


def pci_addresses(uuids: Collection[str]) -> dict[str, str]:
    """Return the PCI address of each GPU as the kernel writes it (0000:3b:00.0), by UUID.

    {} without NVML, and where it does not tell that of every one.
    """
    with nvml() as library:
        if library is None:
            return {}
        found = {}
        for uuid in uuids:
            try:
                told = library.nvmlDeviceGetPciInfo(library.nvmlDeviceGetHandleByUUID(uuid)).busId
            except library.NVMLError:
                return {}
            domain, rest = _text(told).lower().split(":", 1)
            found[uuid] = f"{int(domain, 16):04x}:{rest}"
        return found


def memory_used_mib(uuids: list[str]) -> dict[str, int]:
    """Return the memory in use on each GPU in MiB, by UUID; {} without NVML."""
    with nvml() as library:
        if library is None:
            return {}
        return {
            uuid: library.nvmlDeviceGetMemoryInfo(library.nvmlDeviceGetHandleByUUID(uuid)).used // MIB
            for uuid in uuids
        }


def processes_on(uuids: Sequence[str]) -> list[int]:
    """Return the pids that compute on these GPUs; none without NVML, or where it does not tell."""
    with nvml() as library:
        if library is None:
            return []
        found: set[int] = set()
        for uuid in uuids:
            try:
                device = library.nvmlDeviceGetHandleByUUID(uuid)
                found |= {p.pid for p in library.nvmlDeviceGetComputeRunningProcesses(device)}
            except library.NVMLError:
                continue
        return sorted(found)


def driver_version() -> str | None:
    """Return the driver's version, or None without NVML."""
    with nvml() as library:
        return None if library is None else _text(library.nvmlSystemGetDriverVersion())

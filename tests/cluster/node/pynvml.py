"""The NVML of a node with one idle GPU: it stands on the node's PYTHONPATH and nowhere else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

UUID = "GPU-00000000-0000-4000-8000-000000000001"
GPU = object()
NVML_SUCCESS = 0
NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0
NVML_FI_DEV_MEMORY_TEMP, NVML_FI_DEV_POWER_INSTANT = 82, 186


class NVMLError(Exception):
    """Any error of NVML."""


def nvmlInit() -> None:
    """Do nothing: it is always there."""


nvmlShutdown = nvmlInit


def nvmlDeviceGetCount() -> int:
    return 1


def nvmlDeviceGetHandleByIndex(_index: int) -> object:
    return GPU


def nvmlDeviceGetHandleByUUID(_uuid: str) -> object:
    return GPU


def nvmlDeviceGetUUID(_gpu: object) -> str:
    return UUID


def nvmlDeviceGetName(_gpu: object) -> str:
    return "Paper GPU"


def nvmlDeviceGetCudaComputeCapability(_gpu: object) -> tuple[int, int]:
    return 12, 0


def nvmlDeviceGetMemoryInfo(_gpu: object) -> Any:
    return SimpleNamespace(total=96 << 30, used=0)


def nvmlSystemGetDriverVersion() -> str:
    return "580.0"


def __getattr__(name: str) -> Any:
    """Refuse every sensor, as a GPU does that lacks them."""
    if name.startswith("nvml"):
        return _not_supported
    raise AttributeError(name)


def _not_supported(*_: object) -> None:
    raise NVMLError("Not Supported")

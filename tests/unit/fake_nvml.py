"""An NVML in memory: GPUs with figures a test sets; a figure that is missing is "not supported"."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

NVML_SUCCESS = 0
NOT_SUPPORTED = 3


class NVMLError(Exception):
    """Any error of NVML."""


@dataclass
class FakeGpu:
    """One GPU; ``energy_mj`` grows by ``energy_step_mj`` each time it is read."""

    power_mw: int | None = 400_000
    energy_mj: int | None = None
    energy_step_mj: int = 0
    sm_clock: int | None = 1980
    memory_clock: int | None = 2619
    temperature: int | None = 55
    memory_temperature: int | None = None
    memory_bytes: int | None = 100 << 30
    utilization: int | None = 97
    reasons: int | None = 0
    pids: tuple[int, ...] = ()


@dataclass
class FakeNvml:
    """Stands where the module pynvml stands."""

    gpus: dict[str, FakeGpu]
    open: int = 0
    NVMLError: type[Exception] = NVMLError
    NVML_SUCCESS: int = NVML_SUCCESS
    NVML_CLOCK_SM: int = 1
    NVML_CLOCK_MEM: int = 2
    NVML_TEMPERATURE_GPU: int = 0
    NVML_FI_DEV_MEMORY_TEMP: int = 82
    NVML_FI_DEV_POWER_INSTANT: int = 186
    lost: set[str] = field(default_factory=set)

    def nvmlInit(self) -> None:
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> FakeGpu:
        if uuid not in self.gpus:
            raise NVMLError("not found")
        return self.gpus[uuid]

    def nvmlDeviceGetCount(self) -> int:
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> FakeGpu:
        return list(self.gpus.values())[index]

    def nvmlDeviceGetUUID(self, gpu: FakeGpu) -> str:
        return next(uuid for uuid, each in self.gpus.items() if each is gpu)

    def nvmlDeviceGetPciInfo(self, gpu: FakeGpu) -> Any:
        number = next(n for n, each in enumerate(self.gpus.values(), 1) if each is gpu)
        return SimpleNamespace(busId=f"00000000:{number:02X}:00.0")

    def nvmlDeviceGetName(self, _gpu: FakeGpu) -> str:
        return "Paper GPU"

    def nvmlDeviceGetCudaComputeCapability(self, _gpu: FakeGpu) -> tuple[int, int]:
        return 12, 0

    def nvmlSystemGetDriverVersion(self) -> str:
        return "580.0"

    def nvmlDeviceGetComputeRunningProcesses(self, gpu: FakeGpu) -> list[Any]:
        return [SimpleNamespace(pid=pid) for pid in gpu.pids]

    def nvmlDeviceGetPowerUsage(self, gpu: FakeGpu) -> int:
        return supported(gpu.power_mw)

    def nvmlDeviceGetTotalEnergyConsumption(self, gpu: FakeGpu) -> int:
        energy = supported(gpu.energy_mj)
        gpu.energy_mj = energy + gpu.energy_step_mj
        return energy

    def nvmlDeviceGetClockInfo(self, gpu: FakeGpu, kind: int) -> int:
        return supported(gpu.sm_clock if kind == self.NVML_CLOCK_SM else gpu.memory_clock)

    def nvmlDeviceGetTemperature(self, gpu: FakeGpu, _sensor: int) -> int:
        return supported(gpu.temperature)

    def nvmlDeviceGetMemoryInfo(self, gpu: FakeGpu) -> Any:
        return SimpleNamespace(used=supported(gpu.memory_bytes), total=96 << 30)

    def nvmlDeviceGetUtilizationRates(self, gpu: FakeGpu) -> Any:
        return SimpleNamespace(gpu=supported(gpu.utilization))

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, gpu: FakeGpu) -> int:
        return supported(gpu.reasons)

    def nvmlDeviceGetFieldValues(self, gpu: FakeGpu, fields: list[int]) -> list[Any]:
        (wanted,) = fields
        value = gpu.memory_temperature if wanted == self.NVML_FI_DEV_MEMORY_TEMP else None
        status = NOT_SUPPORTED if value is None else NVML_SUCCESS
        return [SimpleNamespace(nvmlReturn=status, value=SimpleNamespace(uiVal=value or 0))]


def supported(value: int | None) -> int:
    """Return the value; raises NVMLError where the GPU lacks it."""
    if value is None:
        raise NVMLError("Not Supported")
    return value

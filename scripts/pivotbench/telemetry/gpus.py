"""A server's GPUs by NVML."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from pivotbench.machine.gpu import MIB
from pivotbench.telemetry.reading import ENERGY, Reading, known, told

# Bits of nvmlClocksEventReasons (NVML API reference). An idle GPU's low clock is no throttling: not named.
REASONS = {
    0x002: "applications_clocks_setting",
    0x004: "sw_power_cap",
    0x008: "hw_slowdown",
    0x010: "sync_boost",
    0x020: "sw_thermal_slowdown",
    0x040: "hw_thermal_slowdown",
    0x080: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}


class GpuReader:
    """Reads GPUs by UUID through an initialised NVML; one that is not there gives no readings.

    NVML's functions are called through ctypes, which lets other threads run meanwhile.
    """

    def __init__(self, nvml: Any, uuids: Sequence[str]) -> None:
        self._nvml = nvml
        handles = {uuid: told(nvml.nvmlDeviceGetHandleByUUID, uuid) for uuid in uuids}
        self._handles = {uuid: handle for uuid, handle in handles.items() if handle is not None}

    @property
    def devices(self) -> list[str]:
        """The GPUs that can be read."""
        return list(self._handles)

    def read(self) -> list[Reading]:
        """Return a reading of every GPU, each timed for itself."""
        return [self._read(uuid, handle) for uuid, handle in self._handles.items()]

    def _read(self, uuid: str, gpu: Any) -> Reading:
        nvml = self._nvml
        began = time.monotonic()
        # At once where it is told: nvmlDeviceGetPowerUsage is a mean over the last second since Ampere.
        power_mw = self._field(gpu, "NVML_FI_DEV_POWER_INSTANT") or told(nvml.nvmlDeviceGetPowerUsage, gpu)
        energy_mj = told(nvml.nvmlDeviceGetTotalEnergyConsumption, gpu)  # Volta and later
        ended = time.monotonic()
        memory = told(nvml.nvmlDeviceGetMemoryInfo, gpu)
        utilization = told(nvml.nvmlDeviceGetUtilizationRates, gpu)
        values = known(
            power_w=None if power_mw is None else power_mw / 1e3,
            sm_clock_mhz=told(nvml.nvmlDeviceGetClockInfo, gpu, nvml.NVML_CLOCK_SM),
            memory_clock_mhz=told(nvml.nvmlDeviceGetClockInfo, gpu, nvml.NVML_CLOCK_MEM),
            temperature_c=told(nvml.nvmlDeviceGetTemperature, gpu, nvml.NVML_TEMPERATURE_GPU),
            memory_temperature_c=self._field(gpu, "NVML_FI_DEV_MEMORY_TEMP"),
            memory_mib=None if memory is None else memory.used / MIB,
            utilization_percent=None if utilization is None else utilization.gpu,
            **{ENERGY: None if energy_mj is None else energy_mj / 1e3},
        )
        return Reading((began + ended) / 2, uuid, values, self._reasons(gpu))

    def _reasons(self, gpu: Any) -> tuple[str, ...] | None:
        # The older name: drivers before 535 lack the newer one, and later ones keep both.
        bits = told(self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons, gpu)
        return None if bits is None else tuple(name for bit, name in REASONS.items() if bits & bit)

    def _field(self, gpu: Any, name: str) -> int | None:
        """Return a field of unsigned values; 0 is what a sensor that is not there gives: None."""
        fields = told(self._nvml.nvmlDeviceGetFieldValues, gpu, [getattr(self._nvml, name)])
        if not fields or fields[0].nvmlReturn != self._nvml.NVML_SUCCESS:
            return None
        return int(fields[0].value.uiVal) or None

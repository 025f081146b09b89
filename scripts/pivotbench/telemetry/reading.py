"""What one device showed at one time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

HOST = "host"

# Every quantity a device may tell, its unit in its name. ``energy_joules`` is a counter from an unknown zero.
GPU_QUANTITIES = (
    "power_w",
    "sm_clock_mhz",
    "memory_clock_mhz",
    "temperature_c",
    "memory_temperature_c",
    "memory_mib",
    "utilization_percent",
)
HOST_QUANTITIES = (
    "power_w",
    "cpu_percent",
    "server_cpu_percent",
    "frequency_mhz",
    "temperature_c",
    "server_memory_mib",
    "load_1min",
)
ENERGY = "energy_joules"
QUANTITIES = tuple(dict.fromkeys((*GPU_QUANTITIES, *HOST_QUANTITIES, ENERGY)))


@dataclass(frozen=True)
class Reading:
    """One device at one time, on the monotonic clock; ``device`` is a GPU's UUID or HOST.

    ``values`` holds the quantities the device told. ``reasons`` are the names of what slowed its clock
    just then; None: it does not tell.
    """

    seconds: float
    device: str
    values: dict[str, float]
    reasons: tuple[str, ...] | None = None


Answer = TypeVar("Answer")


def told(ask: Callable[..., Answer], *arguments: object) -> Answer | None:
    """Return what ``ask`` answers, None where it raises: a figure that is not to be had fails no run."""
    try:
        return ask(*arguments)
    except Exception:  # NVML's errors, psutil's, unreadable files: each means that this is not told
        return None


def known(**values: float | None) -> dict[str, float]:
    """Return the values that are not None."""
    return {name: float(value) for name, value in values.items() if value is not None}

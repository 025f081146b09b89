"""The machine and the server's processes on it, by psutil, and the processors' energy by RAPL."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from pathlib import Path

import psutil

from pivotbench.gpu import MIB
from pivotbench.telemetry.reading import ENERGY, HOST, Reading, known, told

# Frequency, temperature, load and memory move slowly, and are dear where there are hundreds of cores or
# processes: psutil reads a file for each.
SLOW_SECONDS = 1.0
CPU_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "cpu-thermal")
POWERCAP = Path("/sys/class/powercap")


class HostReader:
    """Reads the machine; ``processes`` tells the server's pids and is asked again every SLOW_SECONDS.

    ``cpu_percent`` is of the whole machine, 100 when every core is busy. ``server_cpu_percent`` is of the
    server's processes, 100 a core. ``server_memory_mib`` adds their resident sets, in which memory they
    share counts once for each. What moves per time is known from the second reading on.
    """

    def __init__(self, processes: Callable[[], Collection[int]], powercap: Path = POWERCAP) -> None:
        self._processes = processes
        self._rapl = Rapl(powercap)
        self._server: dict[int, psutil.Process] = {}
        self._slow_due = 0.0
        self._before: tuple[float, dict[int, float], float | None] | None = None
        psutil.cpu_percent()

    def read(self) -> list[Reading]:
        """Return one reading of the machine."""
        now = time.monotonic()
        slow = {}
        if now >= self._slow_due:
            self._slow_due = now + SLOW_SECONDS
            slow = self._slow()
        energy = self._rapl.joules()
        busy = {pid: seconds for pid in self._server if (seconds := self._busy_seconds(pid)) is not None}
        server = power = percent = None
        if self._before is not None and (took := now - self._before[0]) > 0:
            _, busy_before, energy_before = self._before
            percent = told(psutil.cpu_percent)
            both = busy.keys() & busy_before.keys()
            server = 100 * sum(busy[pid] - busy_before[pid] for pid in both) / took if both else None
            if energy is not None and energy_before is not None:
                power = (energy - energy_before) / took
        self._before = (now, busy, energy)
        fast = known(cpu_percent=percent, server_cpu_percent=server, power_w=power, **{ENERGY: energy})
        return [Reading(now, HOST, fast | slow)]

    def _slow(self) -> dict[str, float]:
        pids = told(self._processes) or ()
        self._server = {
            pid: process
            for pid in pids
            if (process := self._server.get(pid) or told(psutil.Process, pid)) is not None
        }
        resident = [memory.rss for p in self._server.values() if (memory := told(p.memory_info))]
        frequency = told(psutil.cpu_freq)
        load = told(psutil.getloadavg)
        return known(
            frequency_mhz=(frequency.current or None) if frequency else None,
            temperature_c=told(_hottest_cpu_sensor),
            server_memory_mib=sum(resident) / MIB if resident else None,
            load_1min=load[0] if load else None,
        )

    def _busy_seconds(self, pid: int) -> float | None:
        times = told(self._server[pid].cpu_times)
        return None if times is None else times.user + times.system


class Rapl:
    """The energy counters of the processor packages, without their memory; often root alone may read them."""

    def __init__(self, powercap: Path) -> None:
        packages = [p for p in sorted(powercap.glob("intel-rapl:*")) if p.name.count(":") == 1]
        # A platform-wide domain (psys) holds the packages too.
        packages = [p for p in packages if (told((p / "name").read_text) or "").startswith("package")]
        self._range = {p: told(_number, p / "max_energy_range_uj") or 0 for p in packages}
        self._last: dict[Path, int] = {}
        self._turns: dict[Path, int] = dict.fromkeys(packages, 0)

    def joules(self) -> float | None:
        """Return the counters' sum without wrap-arounds; None where one cannot be read or none is there."""
        total = 0
        for package, turn in self._range.items():
            counter = told(_number, package / "energy_uj")
            if counter is None:
                return None
            self._turns[package] += counter < self._last.get(package, 0)
            self._last[package] = counter
            total += counter + self._turns[package] * turn
        return total / 1e6 if self._range else None


def _number(path: Path) -> int:
    return int(path.read_text())


def _hottest_cpu_sensor() -> float | None:
    sensors = psutil.sensors_temperatures()
    chip = next((sensors[name] for name in CPU_SENSORS if sensors.get(name)), [])
    return max((sensor.current for sensor in chip), default=None)

"""The machine and the server's processes on it, by psutil, and the processors' energy by RAPL."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from pathlib import Path

import psutil

from pivotbench.machine.gpu import MIB
from pivotbench.telemetry.reading import ENERGY, HOST, Reading, known, told

# Reading a process or a core's frequency costs some 50 microseconds each, and a machine may have hundreds
# of them: those are read less often than the rest.
SLOW_SECONDS = 0.5
CPU_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "cpu-thermal")
POWERCAP = Path("/sys/class/powercap")


class HostReader:
    """Reads the machine and, every SLOW_SECONDS, the server's processes, whose pids ``processes`` tells.

    ``cpu_percent`` is of the whole machine, 100 when every core is busy. ``server_cpu_percent`` is of the
    server's processes, 100 a core. ``server_memory_mib`` adds their resident sets, in which memory they
    share counts once for each. What is a rate is known from the second reading on.
    """

    def __init__(self, processes: Callable[[], Collection[int]], powercap: Path = POWERCAP) -> None:
        self._processes = processes
        self._rapl = Rapl(powercap)
        self._power = Rate()
        self._server: dict[int, tuple[psutil.Process, Rate]] = {}
        self._slow_due = 0.0
        psutil.cpu_percent()

    def read(self) -> list[Reading]:
        """Return one reading of the machine."""
        now = time.monotonic()
        energy = self._rapl.joules()
        values = known(
            cpu_percent=told(psutil.cpu_percent), power_w=self._power.of(energy, now), **{ENERGY: energy}
        )
        if now >= self._slow_due:
            self._slow_due = now + SLOW_SECONDS
            values |= self._read_slow()
        return [Reading(now, HOST, values)]

    def _read_slow(self) -> dict[str, float]:
        self._server = self._found()
        busy, resident = [], []
        for process, rate in self._server.values():
            if (times := told(process.cpu_times)) and (memory := told(process.memory_info)):
                resident.append(memory.rss)
                busy.append(rate.of(times.user + times.system, time.monotonic()))
        moving = [share for share in busy if share is not None]
        frequency, load = told(psutil.cpu_freq), told(psutil.getloadavg)
        return known(
            server_cpu_percent=100 * sum(moving) if moving else None,
            server_memory_mib=sum(resident) / MIB if resident else None,
            frequency_mhz=(frequency.current or None) if frequency else None,
            temperature_c=told(_hottest_cpu_sensor),
            load_1min=load[0] if load else None,
        )

    def _found(self) -> dict[int, tuple[psutil.Process, Rate]]:
        found = {}
        for pid in told(self._processes) or ():
            if pid in self._server:
                found[pid] = self._server[pid]
            elif process := told(psutil.Process, pid):
                found[pid] = (process, Rate())
        return found


class Rate:
    """How fast a counter grows, from one time it is read to the next."""

    def __init__(self) -> None:
        self._last: tuple[float, float] | None = None

    def of(self, count: float | None, now: float) -> float | None:
        """Return the growth per second since the last time; None the first time and where none is known."""
        last, self._last = self._last, None if count is None else (count, now)
        if last is None or count is None or now <= last[1]:
            return None
        return (count - last[0]) / (now - last[1])


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

"""Reads the devices again and again while a server is measured."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from types import TracebackType

from pivotbench.machine.gpu import nvml
from pivotbench.telemetry.gpus import GpuReader
from pivotbench.telemetry.host import HostReader
from pivotbench.telemetry.reading import Reading

# NVML renews its energy counter about ten times a second (ml.energy blog, "Thermally stable profiling").
PERIOD_SECONDS = 0.1
# A GPU that fell off the bus may hold NVML for long.
PATIENCE_SECONDS = 2.0


class Sampler:
    """A thread that reads the server's GPUs (by UUID) and the machine every PERIOD_SECONDS.

    A thread is enough: it waits in system calls and in NVML, which both let the event loop run, and itself
    computes little: 30 microseconds a GPU, 70 for the machine, 40 a process of the server (on an AMD EPYC).
    It never raises: what cannot be read is missing, and where reading breaks off, readings do.
    """

    def __init__(self, gpus: Sequence[str], processes: Callable[[], Collection[int]]) -> None:
        self._gpus, self._processes = gpus, processes
        self._readings: list[Reading] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join(PATIENCE_SECONDS)

    def readings(self, begin: float, end: float) -> list[Reading]:
        """Return the readings from ``begin`` to ``end`` on the monotonic clock, and the neighbours of both.

        Waits for the first reading after ``end``, but not long.
        """
        until = time.monotonic() + PATIENCE_SECONDS
        while self._newest() <= end and self._thread.is_alive() and time.monotonic() < until:
            time.sleep(PERIOD_SECONDS / 10)
        margin = 2 * PERIOD_SECONDS
        return [r for r in list(self._readings) if begin - margin <= r.seconds <= end + margin]

    def _newest(self) -> float:
        return self._readings[-1].seconds if self._readings else 0.0

    def _run(self) -> None:
        with nvml() as library:
            gpus = GpuReader(library, self._gpus) if library is not None else None
            host = HostReader(self._processes)
            due = time.monotonic()
            while not self._over.wait(max(0.0, due - time.monotonic())):
                round_ = [*(gpus.read() if gpus else ()), *host.read()]
                self._readings += round_
                due = max(due + PERIOD_SECONDS, time.monotonic())

"""The NVML of a host whose GPUs a test fills: it stands on the PYTHONPATH of what the test starts.

``$PIVOTBENCH_TEST_GPUS`` is a JSON file {uuid: {pid: MiB}}; a process holds its memory as long as it lives.
``$PIVOTBENCH_TEST_SYSFS`` stands where /sys stands; the n-th GPU is the PCI device 0000:0n:00.0.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "unit"))

from fake_nvml import FakeGpu, FakeNvml


class HostNvml(FakeNvml):
    """Reads the file anew at each init."""

    def nvmlInit(self) -> None:
        super().nvmlInit()
        held = json.loads(Path(os.environ["PIVOTBENCH_TEST_GPUS"]).read_text())
        self.gpus = {}
        for uuid, users in held.items():
            living = {int(pid): mib for pid, mib in users.items() if Path(f"/proc/{pid}").exists()}
            self.gpus[uuid] = FakeGpu(memory_bytes=sum(living.values()) << 20, pids=tuple(living))
        release = sys.modules.get("pivotbench.lease.release")
        if release is not None:  # there is no driver whose bookkeeping would have to be waited for
            release.MEMORY_SECONDS = 0.5  # type: ignore[attr-defined]
        numa, sysfs = sys.modules.get("pivotbench.machine.numa"), os.environ.get("PIVOTBENCH_TEST_SYSFS")
        if numa is not None and sysfs:
            numa.SYSFS = Path(sysfs)  # type: ignore[attr-defined]


sys.modules[__name__] = HostNvml({})  # type: ignore[assignment]

"""Which GPUs a server is shown."""

from __future__ import annotations

import sys

import pytest
from fake_nvml import FakeGpu, FakeNvml

from pivotbench.machine.gpu import Gpu, device_variables, pci_addresses


def gpu(index: int) -> Gpu:
    return Gpu(f"GPU-{9 - index}", "NVIDIA H200", index, 143771, "9.0")


def test_gpus_are_shown_by_number_because_sglang_reads_numbers() -> None:
    """With ``--tp 2`` its all-reduce does int() on each entry, and a UUID ends the launch."""
    shown = device_variables([gpu(n) for n in range(4)], ["GPU-6", "GPU-8"])
    assert [int(n) for n in shown["CUDA_VISIBLE_DEVICES"].split(",")] == [1, 3]
    assert shown["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID", "NVML's order, which the numbers are of"


def test_pci_addresses_are_written_as_the_kernel_names_its_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml({"GPU-a": FakeGpu(), "GPU-b": FakeGpu()}))
    assert pci_addresses(["GPU-b", "GPU-a"]) == {"GPU-b": "0000:02:00.0", "GPU-a": "0000:01:00.0"}
    assert pci_addresses(["GPU-a", "MIG-of-another-kind"]) == {}

"""Which GPUs a server is shown."""

from __future__ import annotations

from pivotbench.machine.gpu import Gpu, device_variables


def gpu(index: int) -> Gpu:
    return Gpu(f"GPU-{9 - index}", "NVIDIA H200", index, 143771, "9.0")


def test_gpus_are_shown_by_number_because_sglang_reads_numbers() -> None:
    """With ``--tp 2`` its all-reduce does int() on each entry, and a UUID ends the launch."""
    shown = device_variables([gpu(n) for n in range(4)], ["GPU-6", "GPU-8"])
    assert [int(n) for n in shown["CUDA_VISIBLE_DEVICES"].split(",")] == [1, 3]
    assert shown["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID", "NVML's order, which the numbers are of"

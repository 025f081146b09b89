"""Where compiled kernels are kept: nobody who may be at work at the same time shares a folder."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from pivotbench.machine.kernel_caches import GUARD, prepare, slot_folder, slot_variables


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home that all nodes share."""
    monkeypatch.setenv("PIVOTBENCH_CACHE", str(tmp_path))
    monkeypatch.delenv("TORCH_EXTENSIONS_DIR", raising=False)


def on(monkeypatch: pytest.MonkeyPatch, node: str, *devices: str) -> Path:
    monkeypatch.setattr(platform, "node", lambda: node)
    return slot_folder("sglang", "0.5.15", devices)


def test_nodes_without_gpus_keep_their_kernels_apart_in_a_shared_home(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def launched_on(node: str) -> Path:
        variables = slot_variables({"TORCH_EXTENSIONS_DIR": "torch"}, on(monkeypatch, node, "cpu"), {})
        prepare(variables)
        return Path(variables["TORCH_EXTENSIONS_DIR"])

    guard = launched_on("one") / GUARD
    guard.touch()
    launched_on("two")
    assert guard.exists(), "the second node leaves alone what the first compiles"
    launched_on("one")
    assert not guard.exists(), "a later launch of the first knows that nobody does"


def test_gpus_are_known_by_their_uuids_wherever_they_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert on(monkeypatch, "one", "GPU-a", "GPU-b") == on(monkeypatch, "two", "GPU-b", "GPU-a")
    assert on(monkeypatch, "one", "GPU-a") != on(monkeypatch, "one", "GPU-b")

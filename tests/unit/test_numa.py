"""NUMA nodes as the kernel tells them, and what a process binds itself to."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pivotbench.lease.locks import DeviceLocks
from pivotbench.machine import numa


@pytest.fixture
def sysfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host with GPUs a and b on node 0, c on node 1, and d on a node it does not tell."""
    for address, node in (
        ("0000:01:00.0", 0),
        ("0000:02:00.0", 0),
        ("0001:03:00.0", 1),
        ("0000:04:00.0", -1),
    ):
        device = tmp_path / "bus" / "pci" / "devices" / address
        device.mkdir(parents=True)
        (device / "numa_node").write_text(f"{node}\n")
    ours = numa.in_words(os.sched_getaffinity(0))
    for node, cpus in ((0, ours), (1, "100000-100003,100008")):
        place = tmp_path / "devices" / "system" / "node" / f"node{node}"
        place.mkdir(parents=True)
        (place / "cpulist").write_text(f"{cpus}\n")
    monkeypatch.setattr(numa, "SYSFS", tmp_path)
    return tmp_path


PLACES = {"a": "0000:01:00.0", "b": "0000:02:00.0", "c": "0001:03:00.0"}


@pytest.mark.usefixtures("sysfs")
def test_devices_are_grouped_by_node_unless_one_is_not_told() -> None:
    assert numa.by_node(PLACES) == [["a", "b"], ["c"]]
    assert numa.by_node({**PLACES, "d": "0000:04:00.0"}) == []
    assert numa.by_node({**PLACES, "e": "0000:99:00.0"}) == []


@pytest.mark.usefixtures("sysfs")
def test_a_binding_holds_the_processors_that_this_run_may_use() -> None:
    assert numa.binding_to(PLACES.values()) == numa.Binding((0, 1), frozenset(os.sched_getaffinity(0)))


@pytest.mark.usefixtures("sysfs")
@pytest.mark.parametrize(
    ("addresses", "words"),
    [
        (["0000:04:00.0"], "the host tells no NUMA node of the GPU at 0000:04:00.0"),
        (["0001:03:00.0"], "may use none of the processors of the GPUs' NUMA node 1"),
        ([], "NVML tells no PCI address"),
    ],
)
def test_what_cannot_be_bound_says_why(addresses: list[str], words: str) -> None:
    with pytest.raises(numa.CannotBind, match=words):
        numa.binding_to(addresses)


def test_a_node_without_a_list_of_processors_is_told(sysfs: Path) -> None:
    (sysfs / "devices" / "system" / "node" / "node0" / "cpulist").unlink()
    with pytest.raises(numa.CannotBind, match="no processors of NUMA node 0"):
        numa.binding_to(["0000:01:00.0"])


def test_a_thread_that_binds_itself_has_these_processors_and_this_memory() -> None:
    chosen = min(os.sched_getaffinity(0))

    def bound() -> tuple[set[int], str | None, str]:
        why = numa.bind(numa.Binding((0,), frozenset({chosen})))
        return os.sched_getaffinity(0), why, Path("/proc/thread-self/numa_maps").read_text()

    # In a thread of its own: what it bound ends with it.
    with ThreadPoolExecutor(1) as pool:
        cpus, why, maps = pool.submit(bound).result()
    assert cpus == {chosen}
    assert why is not None or "bind:0" in maps


def test_processors_are_written_as_the_kernel_lists_them() -> None:
    assert numa.in_words([0, 1, 2, 3, 8, 10, 11]) == "0-3,8,10-11"
    assert numa.in_words([]) == ""


def test_devices_come_from_one_group_even_if_others_are_free(tmp_path: Path) -> None:
    groups = [["a", "b"], ["c", "d"]]
    first, second, third = (DeviceLocks("abcd", 2, tmp_path, groups=groups) for _ in range(3))
    alone = DeviceLocks(["a"], 1, tmp_path)
    assert alone.try_acquire() and first.try_acquire()
    assert sorted(first.held) == ["c", "d"]
    assert not second.try_acquire(), "a is taken, and b alone is no pair of one node"
    alone.release()
    assert second.try_acquire() and sorted(second.held) == ["a", "b"]
    assert not third.try_acquire()
    for locks in (first, second, third):
        locks.release()

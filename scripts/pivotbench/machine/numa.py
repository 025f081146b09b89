"""Which NUMA nodes GPUs belong to, and the binding of what this process starts to them.

Processors and memory policy are inherited from the thread that starts a process, across exec as well
(sched_setaffinity(2), set_mempolicy(2)), so nothing stands on the server's command line.
"""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

SYSFS = Path("/sys")
MPOL_BIND = 2
# Numbers of set_mempolicy, for which the C library has no function (asm/unistd.h).
_SET_MEMPOLICY = {"x86_64": 238, "aarch64": 237}


class CannotBind(Exception):
    """A binding that this host does not allow, or whose nodes it does not tell; the text says why."""


@dataclass(frozen=True)
class Binding:
    """NUMA nodes and their processors, as far as this process may use them."""

    nodes: tuple[int, ...]
    cpus: frozenset[int]


def node_of(address: str) -> int | None:
    """Return the NUMA node of a PCI device, None where the host does not tell one (-1 in a guest)."""
    try:
        node = int((SYSFS / "bus" / "pci" / "devices" / address / "numa_node").read_text())
    except (OSError, ValueError):
        return None
    return node if node >= 0 else None


def by_node(addresses: Mapping[str, str]) -> list[list[str]]:
    """Return devices, given with their PCI addresses, grouped by node; none where one's is not known."""
    groups: dict[int, list[str]] = {}
    for device, address in sorted(addresses.items()):
        node = node_of(address)
        if node is None:
            return []
        groups.setdefault(node, []).append(device)
    return [groups[node] for node in sorted(groups)]


def binding_to(addresses: Iterable[str]) -> Binding:
    """Return the binding to the nodes of these PCI devices, on processors of ours; raises CannotBind."""
    nodes = set()
    for address in addresses:
        node = node_of(address)
        if node is None:
            raise CannotBind(f"the host tells no NUMA node of the GPU at {address}")
        nodes.add(node)
    if not nodes:
        raise CannotBind("NVML tells no PCI address of the GPUs")
    told: set[int] = set()
    for node in nodes:
        try:
            told |= _numbers((SYSFS / "devices" / "system" / "node" / f"node{node}" / "cpulist").read_text())
        except (OSError, ValueError):
            raise CannotBind(f"the host tells no processors of NUMA node {node}") from None
    cpus = told & os.sched_getaffinity(0)
    if not cpus:
        where = in_words(nodes)
        raise CannotBind(f"this run may use none of the processors of the GPUs' NUMA node {where}")
    return Binding(tuple(sorted(nodes)), frozenset(cpus))


def bind(binding: Binding) -> str | None:
    """Bind this thread and what it starts; return why its memory is not bound as well, None where it is.

    Raises CannotBind where not even the processors are.
    """
    try:
        os.sched_setaffinity(0, binding.cpus)
    except OSError as error:
        raise CannotBind(
            f"the host refuses the processors {in_words(binding.cpus)}: {error.strerror}"
        ) from None
    number = _SET_MEMPOLICY.get(platform.machine())
    if number is None:
        return f"memory policies of {platform.machine()} are not known here"
    libc, bits = ctypes.CDLL(None, use_errno=True), 8 * ctypes.sizeof(ctypes.c_ulong)
    words = max(binding.nodes) // bits + 1
    mask = (ctypes.c_ulong * words)()
    for node in binding.nodes:
        mask[node // bits] |= 1 << (node % bits)
    # The kernel reads one bit fewer than it is told of.
    if libc.syscall(number, MPOL_BIND, mask, ctypes.c_ulong(words * bits + 1)) != 0:
        return f"set_mempolicy: {os.strerror(ctypes.get_errno())}"
    return None


def in_words(numbers: Iterable[int]) -> str:
    """Return numbers as the kernel lists them: ``0-3,8``."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][-1] + 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return ",".join("-".join(map(str, part)) for part in parts)


def _numbers(text: str) -> set[int]:
    found: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found

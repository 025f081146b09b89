"""What a server gets of its slot beside devices and port: kernel caches, and the NUMA nodes of its GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pivotbench.engines.base import Engine
from pivotbench.errors import file_fault
from pivotbench.installations import Installation
from pivotbench.lease.state import LaunchOrder
from pivotbench.machine import kernel_caches, numa
from pivotbench.machine.containers import Container
from pivotbench.machine.gpu import pci_addresses


@dataclass(frozen=True)
class Slot:
    """``variables`` are those of its kernel caches; ``binding`` is None unless asked for and possible.

    ``as_json`` is what the launch records of it, with one line for each thing that could not be had.
    """

    variables: dict[str, str] = field(default_factory=dict)
    binding: numa.Binding | None = None
    as_json: dict[str, Any] = field(default_factory=dict)


def device_groups(order: LaunchOrder, candidates: Sequence[str]) -> list[list[str]]:
    """Return the sets of devices to choose from: those of each NUMA node that has enough, where asked."""
    groups = numa.by_node(pci_addresses(candidates)) if order.numa else []
    return [group for group in groups if len(group) >= order.gpus] or [list(candidates)]


def take_slot(order: LaunchOrder, engine: Engine, devices: Sequence[str]) -> Slot:
    """Return the slot of devices held by us; where it is asked, bind this thread, and so what it starts."""
    told: dict[str, Any] = {}
    variables = _caches(order, engine, devices, told)
    binding = _bind(devices, told) if order.numa else None
    return Slot(variables, binding, told)


def _caches(
    order: LaunchOrder, engine: Engine, devices: Sequence[str], told: dict[str, Any]
) -> dict[str, str]:
    if not engine.slot_caches:
        return {}
    installed = Installation(order.python, Container.from_json(order.container))
    identity = installed.identity(engine) or [order.python, order.container]
    folder = kernel_caches.slot_folder(engine.name, identity, devices)
    variables = kernel_caches.slot_variables(engine.slot_caches, folder, order.env)
    try:
        kernel_caches.prepare(variables)
    except OSError as error:
        told["caches"] = {}
        told["caches_shared"] = (
            f"kernel caches are not kept for this slot alone: {file_fault(error) or error}"
        )
        return {}
    told["caches"] = variables
    return variables


def _bind(devices: Sequence[str], told: dict[str, Any]) -> numa.Binding | None:
    addresses = pci_addresses(devices)
    try:
        binding = numa.binding_to(addresses.values())
        memory = numa.bind(binding)
    except numa.CannotBind as refused:
        told["numa"] = {"nodes": [], "why": f"hosts.numa: the server is not bound: {refused}"}
        return None
    why = memory and f"hosts.numa: the server's processors are bound, its memory is not: {memory}"
    told["numa"] = {
        "nodes": list(binding.nodes),
        "cpus": numa.in_words(binding.cpus),
        "memory": memory is None,
        "why": why,
    }
    return binding


def complaints(slot: dict[str, Any]) -> list[str]:
    """Return what a launch's slot lacked, in one line each."""
    lines = [slot.get("caches_shared"), (slot.get("numa") or {}).get("why")]
    return [line for line in lines if line]

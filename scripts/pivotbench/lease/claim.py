"""The devices of one launch: claimed before anything starts, and told of what stands on them.

A device that is locked is not yet free: what a launch left there whose whole watch was killed is ended
first, and a device that it does not leave is not taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pivotbench.lease.locks import DeviceLocks
from pivotbench.lease.occupants import Occupant, clear, note, remains
from pivotbench.lease.slot import device_groups
from pivotbench.lease.state import LaunchOrder
from pivotbench.lease.sweep import sweep_stale
from pivotbench.machine.gpu import CPU, device_variables, gpus_of, memory_used_mib, visible_gpus


class Claim:
    """The devices that one launch waits for and then holds."""

    def __init__(self, order: LaunchOrder) -> None:
        self._launch_id = order.launch_id
        self._gpus = visible_gpus()
        candidates = [gpu.uuid for gpu in self._gpus] if order.gpus else [CPU]
        self._locks = DeviceLocks(
            candidates, order.gpus or 1, vacant=self._vacant, groups=device_groups(order, candidates)
        )
        self._remains: dict[str, str] = {}

    def try_acquire(self) -> bool:
        """Take as many devices as were asked for, or none; a failure announces that we wait for them."""
        return self._locks.try_acquire()

    def wanted_by_others(self) -> bool:
        """Return whether somebody waits for one of the devices held."""
        return self._locks.wanted_by_others()

    def release(self) -> None:
        """Free the devices, or stop waiting for them."""
        self._locks.release()

    @property
    def descriptors(self) -> list[int]:
        """The open locks, for a guard to hold as well."""
        return list(self._locks.held.values())

    @property
    def devices(self) -> list[str]:
        """The devices held, in order: UUIDs of GPUs, or ``cpu``."""
        return sorted(self._locks.held)

    @property
    def uuids(self) -> list[str]:
        """The GPUs held."""
        return gpus_of(self.devices)

    def impossible(self) -> str | None:
        """Return why this host can never serve the claim, None where it can."""
        here, asked = len(self._locks.candidates), self._locks.count
        if here >= asked:
            return None
        return (
            f"the study asks for {asked} GPUs, this host shows {here}: "
            "lower hosts.gpus or free CUDA_VISIBLE_DEVICES"
        )

    def refusal(self, waited_seconds: float) -> str:
        """Return why nothing could be had for so long."""
        waited = f"{waited_seconds:g} s"
        if not self._remains:
            return f"all devices were taken for {waited}: wait, or stop them"
        left = "; ".join(f"on {device}, {words}" for device, words in sorted(self._remains.items()))
        return f"no clean device for {waited}: {left}: nothing is measured beside that, so end it"

    def variables(self) -> dict[str, str]:
        """Return the variables that show a server these devices and no others."""
        return device_variables(self._gpus, self.uuids) if self.uuids else {}

    def memory_mib(self) -> dict[str, int]:
        """Return the memory in use on each GPU held."""
        return memory_used_mib(self.uuids)

    def tell(self, processes: Sequence[str], before_mib: Mapping[str, int]) -> None:
        """Write on each device what stands there: whoever locks it next is to know."""
        for device, lock in self._locks.held.items():
            note(lock, Occupant(self._launch_id, processes, before_mib.get(device)))

    def clear(self) -> None:
        """Write on each device that nothing stands there any more."""
        for lock in self._locks.held.values():
            clear(lock)

    def _vacant(self, device: str, lock: int) -> bool:
        self._remains.pop(device, None)
        if remains(device, lock) is not None:
            sweep_stale()
            if (left := remains(device, lock)) is not None:
                self._remains[device] = left
                return False
        return True

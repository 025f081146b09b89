"""Which GPUs the cells of a run hold at the moment, as the leases on this machine tell."""

from __future__ import annotations

from pivotbench.lease.key import name_in
from pivotbench.lease.state import live_launches
from pivotbench.machine.gpu import gpus_of, visible_gpus


class Devices:
    """The GPUs of this machine, looked up once, and who of us holds them."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self._names = {gpu.uuid: str(gpu.index) for gpu in visible_gpus()}

    def held(self) -> dict[str, str]:
        """Return the GPUs by the name of the cell's lease."""
        held = {}
        for _, handle in live_launches() if self._names else ():
            numbers = sorted((self._names.get(uuid, uuid) for uuid in gpus_of(handle.devices)), key=_order)
            if handle.owner == self.owner and numbers:
                held[name_in(handle.key)] = f"GPU {','.join(numbers)}"
        return held


def _order(number: str) -> tuple[int, str]:
    return len(number), number

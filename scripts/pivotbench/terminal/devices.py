"""Which GPUs the cells of a run hold at the moment, as the leases on this machine tell."""

from __future__ import annotations

from pathlib import Path

from pivotbench.cells import Cell
from pivotbench.lease.state import live_launches
from pivotbench.machine.gpu import visible_gpus


class Devices:
    """The GPUs of this machine, looked up once, and who of us holds them."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self._names = {gpu.uuid: str(gpu.index) for gpu in visible_gpus()}

    def held(self) -> dict[str, str]:
        """Return the GPUs by the start of the lease's key, which names folder and cell."""
        held = {}
        for _, handle in live_launches() if self._names else ():
            numbers = sorted(
                (self._names.get(uuid, uuid) for uuid in handle.devices if uuid != "cpu"), key=_order
            )
            if handle.owner == self.owner and numbers:
                held[handle.key.partition(":{")[0]] = f"GPU {','.join(numbers)}"
        return held


def key_of(cell: Cell) -> str:
    """Return the start of the key of a cell's lease."""
    return f"{Path.cwd()}:{cell.study}/{cell.phase}/{cell.configuration}/r{cell.round}"


def _order(number: str) -> tuple[int, str]:
    return len(number), number

"""What a killed run may have done to the files of its cell: nothing half, nothing anew that held."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pivotbench.cells import Cell
from pivotbench.results import STAGES, Stage
from pivotbench.stage_files import read_stage


class Held:
    """The stage files of a cell that a run about to start has to leave as they are."""

    def __init__(self, cell: Cell, pending: Sequence[Stage], folder: Path = Path()) -> None:
        """Remember the files in ``folder``; those of ``pending`` stages are the run's to make."""
        self.files = {stage: folder / cell.file(stage) for stage in STAGES}
        self.kept = {
            stage: file.read_bytes()
            for stage, file in self.files.items()
            if stage not in pending and file.exists()
        }

    def fault(self) -> str | None:
        """Return what is wrong with the files now that the run is over."""
        torn = [s for s, file in self.files.items() if file.exists() and read_stage(file) is None]
        if torn:
            return f"torn: {', '.join(torn)}"
        again = [s for s, data in self.kept.items() if self.files[s].read_bytes() != data]
        return f"{', '.join(again)} held and was made again" if again else None

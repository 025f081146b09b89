"""Which stored results still hold: judged by their own content, not by file times.

File times say what was made after what; they say nothing of results copied from elsewhere, of an
engine that was upgraded, or of a failure that may well succeed on a second try.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pivotbench.machine.host import difference
from pivotbench.results import PREFLIGHT_REFUSED, STAGES
from pivotbench.stage_files import read_stage


@dataclass(frozen=True)
class _Told:
    """What a stage file said when it was first read: all that its judgement rests on."""

    readable: bool
    fingerprint: str = ""
    failure: Mapping[str, Any] | None = None
    moved: str | None = None


@dataclass
class Judge:
    """Judges stage files as they stood when this run began.

    ``environment`` is the present one (None: the stored one stands, as on a login node);
    ``retry_all`` makes every failure stale, not only transient ones. A file that was replaced
    since its first reading was made by this run, and holds. Every file is read once.
    """

    environment: dict[str, Any] | None
    gpus: int
    retry_all: bool = False
    _seen: dict[Path, tuple[int, _Told | None]] = field(default_factory=dict)

    def stale(self, path: Path, wanted: str) -> str | None:
        """Return why the file must be made anew, None where it holds or is missing."""
        told = self._told(path)
        if told is None:
            return None
        if not told.readable:
            return "it is not a readable result"
        if told.fingerprint != wanted:
            return "it was made for other settings"
        return told.moved or self._retry(told)

    def worth_retrying(self, path: Path) -> str | None:
        """Return why the failure in a stage file may not happen again, None where it holds."""
        told = self._told(path)
        return None if told is None else self._retry(told)

    def refused_before(self, path: Path) -> str | None:
        """Return why a launch that the preflight kept from being tried is to be tried, None for any other."""
        told = self._told(path)
        refused = told is not None and told.failure is not None and told.failure["code"] == PREFLIGHT_REFUSED
        return "the study no longer refuses what the preflight expects to fail" if refused else None

    def _told(self, path: Path) -> _Told | None:
        """Return what the file said when the run began; None where it was missing or was replaced since."""
        try:
            written = path.stat().st_mtime_ns
        except OSError:
            self._seen.setdefault(path, (-1, None))
            return None
        if path not in self._seen:
            self._seen[path] = (written, self._read(path))
        first, told = self._seen[path]
        return told if first == written else None

    def _read(self, path: Path) -> _Told:
        result = read_stage(path)
        if result is None:
            return _Told(readable=False)
        moved = None
        if path.stem == "launch" and self.environment is not None:
            moved = difference(result["environment"], self.environment, gpus=self.gpus)
        if result["status"] == "skipped" and _well_before(path):
            moved = "what it was skipped for is no longer so"
        if not _at_home(path, result["cell"]):
            moved = f"it is a copy of {'{phase}/{configuration}/r{round}'.format(**result['cell'])}"
        failure = result["reason"] if result["status"] == "failed" else None
        return _Told(True, result["fingerprint"], failure, moved)

    def _retry(self, told: _Told) -> str | None:
        if told.failure is not None and (told.failure["kind"] == "transient" or self.retry_all):
            return f"{told.failure['code']} may not happen again"
        return None


def _at_home(path: Path, cell: Mapping[str, Any]) -> bool:
    """Return whether a result lies where it was made, but for the study: its folder may be renamed with it.

    A fingerprint is the same in every round, so a copy of one round would pass for another.
    """
    return path.parts[-4:-1] == (cell["phase"], cell["configuration"], f"r{cell['round']}")


def _well_before(path: Path) -> bool:
    """Return whether all earlier stages of the cell went well: a run was killed before this one."""
    names: list[str] = [*STAGES]
    earlier = [read_stage(path.with_name(f"{name}.json")) for name in names[: names.index(path.stem)]]
    return all(result is not None and result["status"] == "ok" for result in earlier)

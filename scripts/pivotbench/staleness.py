"""Which stored results still hold: judged by their own content, not by file times.

File times say what was made after what; they say nothing of results copied from elsewhere, of an
engine that was upgraded, or of a failure that may well succeed on a second try.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pivotbench.host import difference
from pivotbench.results import PREFLIGHT_REFUSED, Stage
from pivotbench.stage_files import read_stage


@dataclass
class Judge:
    """Judges stage files as they stood when this run began.

    ``environment`` is the present one (None: the stored one stands, as on a login node);
    ``retry_all`` makes every failure stale, not only transient ones. A file that was replaced
    since its first judgement was made by this run, and holds.
    """

    environment: dict[str, Any] | None
    gpus: int
    retry_all: bool = False
    _seen: dict[tuple[Path, str], tuple[int, str | None]] = field(default_factory=dict)

    def stale(self, stage: Stage, path: Path, wanted: str) -> str | None:
        """Return why the file must be made anew, None where it holds or is missing."""
        return self._once((path, "stale"), lambda: self._judge(stage, path, wanted))

    def worth_retrying(self, path: Path) -> str | None:
        """Return why the failure in a stage file may not happen again, None where it holds."""
        return self._once((path, "retry"), lambda: self._retry(read_stage(path)))

    def refused_before(self, path: Path) -> str | None:
        """Return why a launch that the preflight kept from being tried is to be tried, None for any other."""
        return self._once((path, "refused"), lambda: self._refused(read_stage(path)))

    def _once(self, key: tuple[Path, str], judge: Callable[[], str | None]) -> str | None:
        try:
            written = key[0].stat().st_mtime_ns
        except OSError:
            self._seen.setdefault(key, (-1, None))
            return None
        if key in self._seen:
            judged, verdict = self._seen[key]
            return verdict if judged == written else None
        verdict = judge()
        self._seen[key] = (written, verdict)
        return verdict

    def _judge(self, stage: Stage, path: Path, wanted: str) -> str | None:
        result = read_stage(path)
        if result is None:
            return "it is not a readable result"
        if result["fingerprint"] != wanted:
            return "it was made for other settings"
        if stage == "launch" and self.environment is not None:
            changed = difference(result["environment"], self.environment, gpus=self.gpus)
            if changed:
                return changed
        return self._retry(result)

    def _refused(self, result: dict[str, Any] | None) -> str | None:
        refused = result is not None and (result["reason"] or {}).get("code") == PREFLIGHT_REFUSED
        return "the study no longer refuses what the preflight expects to fail" if refused else None

    def _retry(self, result: dict[str, Any] | None) -> str | None:
        if result is not None and result["status"] == "failed":
            reason = result["reason"]
            if reason["kind"] == "transient" or self.retry_all:
                return f"{reason['code']} may not happen again"
        return None

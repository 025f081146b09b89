"""Which stored results still hold: judged by their own content, not by file times.

File times say what was made after what; they say nothing of results copied from elsewhere, of an
engine that was upgraded, or of a failure that may well succeed on a second try.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pivotbench.host import difference
from pivotbench.results import Stage, read_stage


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
    _seen: dict[Path, tuple[int, str | None]] = field(default_factory=dict)

    def stale(self, stage: Stage, path: Path, wanted: str) -> str | None:
        """Return why the file must be made anew, None where it holds or is missing."""
        try:
            written = path.stat().st_mtime_ns
        except OSError:
            self._seen.setdefault(path, (-1, None))
            return None
        if path in self._seen:
            judged, verdict = self._seen[path]
            return verdict if judged == written else None
        verdict = self._judge(stage, path, wanted)
        self._seen[path] = (written, verdict)
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
        if result["status"] == "failed":
            reason = result["reason"]
            if reason["kind"] == "transient" or self.retry_all:
                return f"{reason['code']} may not happen again"
        return None

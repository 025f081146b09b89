"""Where models and what was read of engines are kept, for all studies."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return ``$PIVOTBENCH_CACHE``, or ``~/.cache/pivotbench`` where that is not set."""
    return Path(os.environ.get("PIVOTBENCH_CACHE") or Path.home() / ".cache" / "pivotbench")

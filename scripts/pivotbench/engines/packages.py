"""Which version of a package an interpreter would import, also where its packages lie elsewhere."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from pivotbench.files import fingerprint, read_json, write_json
from pivotbench.machine.cache import cache_folder

# Below an environment's prefix: virtual and conda environments, then Debian's system interpreter.
_SITE_FOLDERS = (
    "lib*/python3*/site-packages",
    "lib/python3*/dist-packages",
    "local/lib/python3*/dist-packages",
)
_ASK_PATH = "import json, sys; print(json.dumps([p for p in sys.path if p]))"
_ASK_TIMEOUT_SECONDS = 60


def package_version(python: Path, package: str) -> str | None:
    """Return the version of ``package`` that ``python`` would import, or None where it has none.

    The folders of its environment are read without starting it. Where those hold no such package,
    as with a wrapper script or a PYTHONPATH, the interpreter is asked once for its search path. That
    answer is kept until the interpreter's file changes; the version itself is read anew each time,
    so that an upgrade is seen.
    """
    found = _find(python, package)
    return None if found is None else found[0]


def package_stamp(python: Path, package: str) -> tuple[str, str, int] | None:
    """Return version, metadata folder and its time for the ``package`` that ``python`` would import.

    One that is installed anew has another stamp; None where there is none.
    """
    found = _find(python, package)
    return None if found is None else (found[0], str(found[1]), found[1].stat().st_mtime_ns)


def versions_beside(python: Path, package: str, others: Iterable[str]) -> dict[str, str]:
    """Return the versions of ``others`` that lie in the same folder as ``package``, without asking."""
    found = _find(python, package)
    if found is None:
        return {}
    told = {name: _metadata_in([found[1].parent], name) for name in others}
    return {name: metadata[0] for name, metadata in told.items() if metadata}


def _find(python: Path, package: str) -> tuple[str, Path] | None:
    # Links are not followed: a virtual environment's interpreter is one, and leads elsewhere.
    prefix = python.absolute().parent.parent
    beside = (folder for pattern in _SITE_FOLDERS for folder in sorted(prefix.glob(pattern)))
    return _metadata_in(beside, package) or _metadata_in(_search_path(python), package)


def _search_path(python: Path) -> list[Path]:
    program = Path(shutil.which(str(python)) or python).absolute()
    try:
        changed = program.stat().st_mtime_ns
    except OSError:
        return []
    asked = [str(program), changed, os.environ.get("PYTHONPATH")]
    answer = cache_folder() / "interpreters" / f"{fingerprint(asked)}.json"
    try:
        return [Path(folder) for folder in read_json(answer)]
    except (OSError, ValueError):
        pass
    try:
        told = subprocess.run(
            [str(program), "-c", _ASK_PATH],
            capture_output=True,
            text=True,
            timeout=_ASK_TIMEOUT_SECONDS,
            check=True,
        )
        folders = json.loads(told.stdout.strip().splitlines()[-1])
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        return []
    with contextlib.suppress(OSError):  # a cache that cannot be written is asked again next time
        write_json(answer, folders)
    return [Path(folder) for folder in folders]


def _metadata_in(folders: Iterable[Path], package: str) -> tuple[str, Path] | None:
    stem = package.lower().replace("-", "_")
    for folder in folders:
        for found in sorted(folder.glob("*.dist-info")):
            name, _, version = found.name.removesuffix(".dist-info").partition("-")
            if name.lower() == stem:
                return version, found
    return None

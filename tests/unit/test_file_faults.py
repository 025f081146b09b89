"""A file that cannot be used is named with what keeps this user from it, and what to do."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from pivotbench.errors import UserError, file_fault
from pivotbench.machine.host import model_revision
from pivotbench.model.local import check_readable


def told(path: Path, number: int = errno.EACCES) -> str | None:
    return file_fault(OSError(number, os.strerror(number), str(path)))


@pytest.fixture
def modes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Root heeds modes here: a file may be used as its owner's bits say."""

    def access(path: str | Path, mode: int) -> bool:
        return os.path.lexists(path) and (Path(path).stat().st_mode >> 6) & mode == mode

    monkeypatch.setattr(os, "access", access)


@pytest.mark.usefixtures("modes")
def test_what_keeps_a_user_out_is_told_from_what_keeps_him_from_writing(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "file"
    file.parent.mkdir()
    file.write_text("")
    said = f"{file}: Permission denied: "
    assert told(file) == f"{said}make {file.parent} writable for you and run again"
    file.chmod(0o200)
    assert told(file) == f"{said}make it readable for you and run again"
    file.chmod(0o400)
    assert told(file) == f"{said}make it writable for you and run again"
    file.unlink()
    assert told(file) == f"{said}make {file.parent} writable for you and run again"
    assert told(file / "deep" / "er") == str(told(file)).replace(str(file) + ":", f"{file}/deep/er:", 1)
    file.parent.chmod(0o600)
    assert told(file) == f"{said}make {file.parent} searchable for you (chmod +x) and run again"
    file.parent.chmod(0o700)


def test_a_file_where_a_folder_is_wanted_is_named(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    fault = told(tmp_path / "cache" / "flags" / "a.json", errno.ENOTDIR)
    assert fault is not None and f"move away the file {tmp_path / 'cache'}, where a folder is wanted" in fault
    with pytest.raises(FileExistsError) as caught:
        (tmp_path / "cache").mkdir(exist_ok=True)
    assert file_fault(caught.value) == f"{tmp_path / 'cache'}: File exists: move it away and run again"


def test_a_model_is_held_to_be_readable_file_by_file(tmp_path: Path) -> None:
    model = tmp_path / "model"
    check_readable(model)  # it may be on the machines that run the servers
    model.mkdir()
    check_readable(model)
    config = model / "config.json"
    for text in ("{broken", "[1]", "", "[" * 100_000):
        config.write_text(text)
        with pytest.raises(UserError) as caught:
            check_readable(model)
        assert str(caught.value).startswith(f"{config}: no")
        assert "\n" not in str(caught.value)
    config.write_text('{"scale": Infinity}')
    check_readable(model)


def test_a_config_in_no_known_encoding_still_tells_one_model_from_another(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_bytes(b"\xff\xfe1")
    first = model_revision(str(tmp_path))
    config.write_bytes(b"\xff\xfe2")
    assert first is not None and first != model_revision(str(tmp_path))

"""Versions of an engine: how they are told apart, and when their flags are read again."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from study_samples import RIGHT, study_of

import scripted
from pivotbench.campaign import Campaign
from pivotbench.engines.catalogue import FlagCatalogue, FlagSpec
from pivotbench.engines.sglang import SGLANG
from pivotbench.installations import (
    Installation,
    flags_file,
    known_versions,
    read_catalogue,
    read_flags,
    write_catalogue,
)

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PIVOTBENCH_TEST_PYTHON", sys.executable)
    monkeypatch.setenv("PIVOTBENCH_CACHE", str(tmp_path / "cache"))
    return scripted.install(tmp_path / "engine", "0.5.16")


def test_a_list_of_flags_survives_its_file(tmp_path: Path) -> None:
    flags = (
        FlagSpec("a", aliases=("b",), choices=("x", "y"), many=True, help="h", setting="s", stores=True),
        FlagSpec("c", deprecated="--a"),
    )
    catalogue = FlagCatalogue("e", "1", flags, {"torch": "2"})
    write_catalogue(tmp_path / "flags.json", catalogue)
    assert read_catalogue(tmp_path / "flags.json") == catalogue


def test_flags_are_read_once_and_again_after_an_upgrade(engine: Path, tmp_path: Path) -> None:
    installed = Installation(str(engine))
    assert read_flags(SGLANG, installed, {}).version == "0.5.16"
    first = flags_file(SGLANG, installed, {})
    assert first is not None and first.is_relative_to(tmp_path / "cache")
    (engine.parent / "python3").rename(engine.parent / "gone")
    assert read_flags(SGLANG, installed, {}).version == "0.5.16", "asked again although it was kept"
    (engine.parent / "gone").rename(engine)
    scripted.upgrade(tmp_path / "engine", "0.5.23")
    assert flags_file(SGLANG, installed, {}) != first
    assert read_flags(SGLANG, installed, {}).version == "0.5.23"


def test_a_version_built_anew_under_its_old_number_is_asked_again(engine: Path, tmp_path: Path) -> None:
    installed = Installation(str(engine))
    before = flags_file(SGLANG, installed, {})
    scripted.upgrade(tmp_path / "engine", "0.5.16")
    assert flags_file(SGLANG, installed, {}) != before


def test_flags_are_read_under_the_studys_variables(engine: Path) -> None:
    """The scripted engine, as the real one, offers a sampling backend more where a variable says so."""

    def choices(env: dict[str, str]) -> tuple[str, ...]:
        flag = read_flags(SGLANG, Installation(str(engine)), env).find("sampling-backend")
        assert flag is not None and flag.choices is not None
        return flag.choices

    assert "token_oracle" not in choices({})
    assert "token_oracle" in choices({"SGLANG_KV_CANARY_ENABLE_TOKEN_ORACLE": "1"})
    assert "token_oracle" not in choices({})


def test_an_engine_that_is_not_there_has_no_list_and_no_version(engine: Path, tmp_path: Path) -> None:
    nowhere = Installation(str(tmp_path / "nowhere" / "bin" / "python"))
    assert flags_file(SGLANG, nowhere, {}) is None
    assert known_versions(SGLANG, nowhere, {}) == (None, {})
    assert known_versions(SGLANG, Installation(str(engine)), {}) == ("0.5.16", {})


def test_a_study_of_sglang_that_names_no_environment_gets_the_one_we_pin(tmp_path: Path) -> None:
    study = study_of(tmp_path, RIGHT.replace("llamacpp", "sglang"))
    campaign = Campaign(study=study, root=ROOT)
    assert campaign.versions == (None,) and campaign.installs(None)
    assert campaign.pins == [str(ROOT / "envs" / "sglang.txt")]
    assert campaign.installation(None) == Installation(str(ROOT / ".venv-sglang" / "bin" / "python"))


def test_packages_that_do_the_work_are_recorded_beside_the_engine(engine: Path, tmp_path: Path) -> None:
    (tmp_path / "engine" / "site" / "torch-2.11.0.dist-info").mkdir()
    (tmp_path / "engine" / "site" / "flashinfer_python-0.6.14.dist-info").mkdir()
    assert known_versions(SGLANG, Installation(str(engine)), {})[1] == {
        "torch": "2.11.0",
        "flashinfer-python": "0.6.14",
    }

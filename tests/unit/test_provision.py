"""Engines and models: where they lie, when they are fetched, and what is said when that fails."""

from __future__ import annotations

import hashlib
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from pivotbench import provision
from pivotbench.engines import get_engine
from pivotbench.errors import UserError

ROOT = Path(__file__).resolve().parents[2]
WEIGHTS = b"GGUF and so on"


@dataclass(frozen=True)
class Model:
    path: str | None = None
    package: str | None = "weights==1.0"
    file: str | None = "weights/tiny.gguf"
    sha256: str | None = hashlib.sha256(WEIGHTS).hexdigest()
    local_path: Path | None = None


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PIVOTBENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder pip takes packages from instead of the network, with one wheel in it."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    with zipfile.ZipFile(folder / "weights-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("weights/tiny.gguf", WEIGHTS)
        wheel.writestr(
            "weights-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: weights\nVersion: 1.0\n"
        )
        wheel.writestr("weights-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr("weights-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def pin(tmp_path: Path, sha256: str) -> Path:
    requirements = tmp_path / "models.txt"
    requirements.write_text(
        f"other==2 \\\n    --hash=sha256:{'0' * 64}\n"
        f"weights==1.0 \\\n    --hash=sha256:{sha256}\n    # via models.in\n"
    )
    return requirements


def test_a_packaged_model_lies_in_the_cache_by_its_hash(cache: Path) -> None:
    model = Model()
    assert model.sha256 is not None
    assert provision.model_path(model) == str(cache / "models" / model.sha256[:16] / "tiny.gguf")


def test_a_path_or_hub_id_is_taken_as_it_is() -> None:
    assert provision.model_path(Model(path="org/model", package=None)) == "org/model"


def test_a_model_is_taken_out_of_its_wheel(tmp_path: Path, wheels: Path) -> None:
    sha256 = hashlib.sha256(next(wheels.iterdir()).read_bytes()).hexdigest()
    place = tmp_path / "models" / "tiny.gguf"
    provision.fetch_model(Model(), place, pin(tmp_path, sha256))
    assert place.read_bytes() == WEIGHTS
    assert list(place.parent.iterdir()) == [place]


def test_a_model_that_is_there_is_not_fetched_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "tiny.gguf"
    place.write_bytes(WEIGHTS)
    provision.fetch_model(Model(), place, tmp_path / "none.txt")
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("wheels")
def test_a_damaged_model_is_fetched_again(tmp_path: Path) -> None:
    place = tmp_path / "models" / "tiny.gguf"
    place.parent.mkdir()
    place.write_bytes(WEIGHTS[:3])
    provision.fetch_model(Model(), place, tmp_path / "none.txt")
    assert place.read_bytes() == WEIGHTS


@pytest.mark.usefixtures("wheels")
def test_a_wheel_other_than_the_pinned_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="do not use it"):
        provision.fetch_model(Model(), tmp_path / "m" / "tiny.gguf", pin(tmp_path, "1" * 64))


@pytest.mark.usefixtures("wheels")
@pytest.mark.parametrize(
    ("model", "said"),
    [
        (Model(sha256="2" * 64), "the study says 2222"),
        (Model(file="weights/huge.gguf"), "holds no weights/huge.gguf"),
        (Model(package="weights==9.9"), "check the network"),
    ],
)
def test_a_wrong_model_leaves_one_line_and_no_file(tmp_path: Path, model: Model, said: str) -> None:
    place = tmp_path / "m" / "tiny.gguf"
    with pytest.raises(UserError, match=said) as error:
        provision.fetch_model(model, place, tmp_path / "none.txt")
    assert "\n" not in str(error.value)
    assert list(place.parent.iterdir()) == []


def test_an_engine_without_requirements_needs_the_studys_own_python(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="python:"):
        provision.install_engine("unheard-of", tmp_path)


def install_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, requirements: str) -> int:
    """Install an engine of these requirements, pip and venv left out; return how many commands it took."""
    commands: list[list[str]] = []

    def record(command: list[str], _: str) -> None:
        commands.append(command)

    monkeypatch.setattr(provision, "_run", record)
    (tmp_path / "envs").mkdir(exist_ok=True)
    (tmp_path / "envs" / "e.txt").write_text(requirements)
    provision.install_engine("e", tmp_path)
    return len(commands)


def test_an_engine_is_installed_once_and_anew_for_other_requirements(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = [install_recorded(tmp_path, monkeypatch, pins) for pins in ("a==1\n", "a==1\n", "a==2\n")]
    assert counts == [2, 0, 2]


def test_an_engine_whose_installation_failed_is_not_taken_for_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise UserError("no network")

    with monkeypatch.context() as patched:
        patched.setattr(provision, "_run", fail)
        (tmp_path / "envs").mkdir()
        (tmp_path / "envs" / "e.txt").write_text("a==1\n")
        with pytest.raises(UserError, match="no network"):
            provision.install_engine("e", tmp_path)
    assert install_recorded(tmp_path, monkeypatch, "a==1\n") == 2


@pytest.mark.parametrize("name", ["llamacpp", "sglang"])
def test_each_engine_we_install_is_pinned_with_hashes_from_whatever_index(name: str) -> None:
    engine = get_engine(name)
    text = provision.requirements_file(name, ROOT).read_text(encoding="utf-8")
    assert provision.pinned_version(engine, ROOT)
    assert not re.search(r"^\s*-(-?)(i|f|index|extra|find|trusted)|https?://", text, re.MULTILINE)
    entries = re.split(r"^(?=[a-z0-9])", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE), flags=re.MULTILINE)
    unpinned = [e.split()[0] for e in entries if e.strip() and ("==" not in e or "--hash=sha256:" not in e)]
    assert not unpinned

"""Two versions of an engine in one study: an environment of this machine and a container image."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import scripted
from scripted.containers.daemon import Daemon
from workflow.campaign import Folder, Run

IMAGE = "example/sglang:v0.5.23"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    folder = tmp_path_factory.mktemp("images")
    scripted.install(folder / "v0.5.23", "0.5.23")
    with pytest.MonkeyPatch.context() as patch, Daemon({}, pullable={IMAGE: folder / "v0.5.23"}) as running:
        for name, value in running.environment.items():
            patch.setenv(name, value)
        patch.setenv("HF_HOME", str(folder / "hub"))
        yield running


@pytest.fixture(scope="module")
def compared(daemon: Daemon, tmp_path_factory: pytest.TempPathFactory) -> tuple[Folder, Run]:
    """A campaign that asks whether the new version is faster than the old one."""
    path = tmp_path_factory.mktemp("versions")
    folder = Folder.create(path)
    old = scripted.install(path / "old", "0.5.16")
    study = folder.study()
    del study["python"], study["speculative"]
    study["versions"] = {"old": {"python": str(old)}, "new": {"container": {"image": IMAGE}}}
    study["serve"] |= {"attention-backend": "fa3", "cuda-graph-max-bs": 8}
    study["backends"] = {
        "old": {"version": "old", "script-token-seconds": 0.06},
        "new": {"version": "new", "moe-runner-backend": "flashinfer_megamoe"},
    }
    study["decision"] |= {"rounds": {"min": 2, "max": 2}, "reference": "old"}
    folder.write(study)
    run = folder.snakemake("all")
    assert run.code == 0, run.text
    assert IMAGE in daemon.images, "it was pulled"
    return folder, run


def launch_of(folder: Folder, name: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((folder.cell(name) / "launch.json").read_text())
    return told


def test_versions_are_compared_and_their_launches_say_what_ran(compared: tuple[Folder, Run]) -> None:
    folder, _ = compared
    old, new = launch_of(folder, "old"), launch_of(folder, "new")
    assert (old["environment"]["engine_version"], new["environment"]["engine_version"]) == (
        "0.5.16",
        "0.5.23",
    )
    assert new["environment"]["image"].startswith("sha256:") and "image" not in old["environment"]
    assert "version" not in old["requested"]
    decision = json.loads((folder.results / "decision.json").read_text())
    (pair,) = decision["comparisons"]
    assert {pair["a"], pair["b"]} == {"old", "new"}
    assert pair["verdict"] in ("faster", "slower", "undecided") and pair["ratio"] is not None
    assert decision["ranking"][0]["configuration"] == "new"
    page = (folder.results / "report.html").read_text()
    assert "sglang 0.5.16" in page and "sglang 0.5.23" in page


def test_the_container_had_its_launchs_name_and_nothing_of_it_is_left(
    compared: tuple[Folder, Run], daemon: Daemon
) -> None:
    folder, _ = compared
    names = {asked["name"] for asked in daemon.asked_for("run")}
    launches = {name for name in names if not name.startswith("pivotbench-flags-")}
    ids = {
        json.loads((folder.cell("new", n) / "launch.json").read_text())["server"]["launch_id"] for n in (1, 2)
    }
    assert launches == {f"pivotbench-{launch_id}" for launch_id in ids}
    assert len(daemon.asked_for("pull")) == 1 and not daemon.containers
    teardown = json.loads((folder.cell("new") / "teardown.json").read_text())
    assert teardown["verdict"] == "released"
    assert launch_of(folder, "new")["command"]["study"][:2] == ["docker", "run"]


def test_a_deprecated_flag_is_said_once_a_version_and_kept_with_the_launch(
    compared: tuple[Folder, Run],
) -> None:
    folder, run = compared
    words = "serve.cuda-graph-max-bs: deprecated in sglang {}: use --cuda-graph-max-bs-decode"
    assert run.text.count(words.format("0.5.16")) == run.text.count(words.format("0.5.23")) == 1
    assert launch_of(folder, "old")["deprecated"] == [
        {"flag": "cuda-graph-max-bs", "use": "--cuda-graph-max-bs-decode"}
    ]


def test_a_flag_that_only_the_other_version_has_is_refused_with_its_line(
    compared: tuple[Folder, Run],
) -> None:
    folder, _ = compared
    study = folder.study()
    study["backends"]["old"]["moe-runner-backend"] = "flashinfer_megamoe"
    file = Path(folder.path / "study.yaml")
    kept = file.read_text()
    try:
        folder.write(study)
        run = folder.snakemake("all")
    finally:
        file.write_text(kept)
    assert run.code != 0
    assert "backends.old.moe-runner-backend: 'flashinfer_megamoe' is none of" in run.text
    assert "(sglang 0.5.16)" in run.text


def test_an_upgrade_of_one_version_makes_its_cells_alone_anew(compared: tuple[Folder, Run]) -> None:
    folder, _ = compared
    assert not folder.snakemake("all").jobs
    scripted.upgrade(folder.path / "old", "0.5.17")
    try:
        run = folder.snakemake("all", "--dry-run")
    finally:
        scripted.upgrade(folder.path / "old", "0.5.16")
    assert "backends/old/r1/launch.json is made anew: engine version was 0.5.16, is 0.5.17" in run.text
    assert "backends/new" not in "\n".join(line for line in run.text.splitlines() if "made anew" in line)

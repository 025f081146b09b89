"""A real engine in a real container, by the workflow: once killed in the middle, then to its end."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from containers.conftest import DOCKER
from containers.docker import IMAGE, Docker
from containers.leases import until
from pivotbench.provision import model_path
from pivotbench.study import load_study
from workflow.campaign import ROOT, Folder, Run
from workflow.test_kills import CELL, released, running_throughput, stage_process
from workflow.test_secrets import SECRET, everything_in

pytestmark = [*DOCKER, pytest.mark.engine]

STAGES = ("launch", "smoke", "throughput", "teardown")
# The embedded engine as an image has it; its flags are read beside it, of the same version.
ENGINE = f"""
from pathlib import Path
from pivotbench.engines.base import Command, flags_to_argv
from pivotbench.engines.llamacpp import LlamaCpp

class Contained(LlamaCpp):
    name = "contained"
    in_containers = True

    def command(self, python, model, flags, *, port, served_name):
        start = (python, "/opt/llamacpp_serve.py", "--model", model, *flags_to_argv(flags))
        address = ("--alias", served_name, "--host", "127.0.0.1", "--port", str(port))
        return Command(study=start, added=address)

    def read_flags(self, python, env, container=None):
        return super().read_flags(Path({str(ROOT)!r}) / ".venv-llamacpp" / "bin" / "python", env)

ENGINE = Contained()
"""


@dataclass(frozen=True)
class Campaign:
    """One cell: the throughput stage of its first run was killed, its second run finished."""

    folder: Folder
    left: dict[str, int]  # containers, after the first
    was_killed: bool
    run: Run

    def stage(self, name: str) -> dict[str, Any]:
        told: dict[str, Any] = json.loads((self.folder.cell("good") / f"{name}.json").read_text())
        return told


def study_of(folder: Folder) -> dict[str, Any]:
    """Return the demo's model on one backend, its engine in the image."""
    model = load_study(ROOT / "config" / "config.yaml").model
    study = folder.study() | {
        "engine": "contained",
        "container": {"image": IMAGE},
        "secrets": ["MY_LICENCE"],
        "model": model_path(model),
        "serve": {"threads": 1, "parallel": 2, "ctx-size": 1024},
        "backends": {"good": {"flash-attn": "on"}},
    }
    del study["python"], study["speculative"]
    return study


@pytest.fixture(scope="module")
def campaign(docker: Docker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Campaign]:
    folder = Folder.create(tmp_path_factory.mktemp("contained"))
    engine = folder.path / "config" / "engines" / "contained.py"
    engine.parent.mkdir(parents=True)
    engine.write_text(ENGINE)
    study = study_of(folder)
    told = {"MY_LICENCE": SECRET, "HF_HOME": str(folder.path / "hub")}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (told | docker.environment).items():
            patch.setenv(name, value)
        study["throughput"]["seconds"] = 60.0  # killed long before
        folder.write(study)
        run = running_throughput(folder)
        stage = stage_process(folder, "throughput")
        assert stage is not None
        os.kill(stage.pid, signal.SIGKILL)
        was_killed = run.wait(timeout=60) != 0
        assert until(lambda: released(folder))
        left = docker.running()
        study["throughput"]["seconds"] = 0.5
        folder.write(study)
        yield Campaign(folder, left, was_killed, folder.snakemake(CELL))
    assert not docker.running()


def test_a_killed_stage_leaves_no_container_and_no_file(campaign: Campaign) -> None:
    assert campaign.was_killed and campaign.left == {}
    assert campaign.run.jobs["launch"] == campaign.run.jobs["smoke"] == 0, "what was done stands"
    assert campaign.run.jobs["throughput"] == campaign.run.jobs["teardown"] == 1


def test_a_real_engine_comes_up_answers_and_is_measured_in_its_container(campaign: Campaign) -> None:
    assert campaign.run.code == 0, campaign.run.text
    assert [campaign.stage(name)["status"] for name in STAGES] == ["ok"] * 4
    launch = campaign.stage("launch")
    assert launch["command"]["study"][:2] == ["docker", "run"]
    assert launch["environment"]["image"].startswith("sha256:")
    assert launch["environment"]["engine_version"] == "2026.10.11549"
    assert launch["server"]["effective"]["flash-attn"] == "on"
    [answer] = campaign.stage("smoke")["prompts"]
    assert answer["expectation"]["met"]
    [run] = campaign.stage("throughput")["runs"]
    assert run["errors"] == [] and all(window["output_tok_s"] > 0 for window in run["windows"])


def test_its_teardown_is_dockers_stop_and_proven(campaign: Campaign) -> None:
    teardown = campaign.stage("teardown")
    assert (teardown["verdict"], teardown["port_closed"], teardown["processes_left"]) == (
        "released",
        True,
        [],
    )
    assert [step["signal"] for step in teardown["signals"]] == ["docker stop"]


def test_no_file_holds_the_key_that_its_server_was_given(campaign: Campaign) -> None:
    told = dict(everything_in(campaign.folder.path))
    assert [path for path, text in told.items() if SECRET in text] == []
    assert SECRET not in campaign.run.text
    assert "MY_LICENCE" in campaign.stage("launch")["command"]["container"]

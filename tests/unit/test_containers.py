"""Containers: what docker and apptainer are told, and what is made of their answers."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

import pytest

import scripted
from pivotbench.engines.base import Command
from pivotbench.engines.sglang import SGLANG
from pivotbench.errors import UserError
from pivotbench.installations import Installation, flags_file, known_versions, read_flags
from pivotbench.lease.contained import contained
from pivotbench.lease.slot import Slot
from pivotbench.lease.state import LaunchOrder
from pivotbench.machine import containers
from pivotbench.machine.containers import Container, Runtime
from pivotbench.machine.gpu import Gpu, device_variables
from pivotbench.machine.mounts import Mount, mounts_for
from pivotbench.machine.numa import Binding
from scripted.containers.daemon import Daemon

IMAGE = "example/sglang:new"
DOCKER = Container("docker", IMAGE)
REAL_DOCKER = shutil.which("docker")


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemon]:
    scripted.install(tmp_path / "new", "0.5.23")
    monkeypatch.setenv("PIVOTBENCH_CACHE", str(tmp_path / "cache"))
    with Daemon({IMAGE: tmp_path / "new"}) as running:
        for name, value in running.environment.items():
            monkeypatch.setenv(name, value)
        yield running


def full_command() -> list[str]:
    return containers.run_command(
        Container("docker", IMAGE, ("--ulimit=memlock=-1",)),
        ["python3", "-m", "sglang.launch_server", "--port", "1"],
        mounts=[Mount(Path("/models"), True), Mount(Path("/a,b"), False)],
        gpus=["GPU-1", "GPU-2"],
        inside={"HF_TOKEN": "secret", "HOME": "/inside", "PIVOTBENCH_LAUNCH": "abc"},
        name="pivotbench-abc",
    )


def test_docker_is_told_name_gpus_by_uuid_folders_and_the_names_of_variables() -> None:
    command = full_command()
    image = command.index(IMAGE)
    assert command[:2] == ["docker", "run"] and command[image - 2 : image] == ["--entrypoint", "python3"]
    assert command[image + 1 :] == ["-m", "sglang.launch_server", "--port", "1"]
    pairs = list(pairwise(command[:image]))
    assert ("--name", "pivotbench-abc") in pairs
    assert ("--gpus", '"device=GPU-1,GPU-2"') in pairs
    assert ("--mount", "type=bind,source=/models,target=/models,readonly") in pairs
    assert ("--mount", 'type=bind,"source=/a,b","target=/a,b"') in pairs
    told = [value for option, value in pairs if option == "--env"]
    assert told == ["HF_TOKEN", "HOME=/inside", "PIVOTBENCH_LAUNCH"]


@pytest.mark.skipif(REAL_DOCKER is None, reason="docker's command is not installed")
@pytest.mark.parametrize(
    "command",
    [
        full_command(),
        ["docker", "stop", "-t", "3", "x"],
        ["docker", "kill", "x"],
        ["docker", "rm", "--force", "x"],
        ["docker", "ps", "--all", "--quiet", "--filter", "name=^x$"],
        ["docker", "inspect", "--type", "container", "--format", "{{.State.Pid}}", "x"],
        ["docker", "image", "inspect", "--format", "{{.Id}}", "x"],
    ],
    ids=lambda command: " ".join(command[1:3]),
)
def test_the_real_docker_command_takes_these_lines_and_lacks_but_a_daemon(
    command: list[str], tmp_path: Path
) -> None:
    environment = {**os.environ, "DOCKER_HOST": f"unix://{tmp_path}/none"}
    told = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert "unknown" not in told.stderr and "invalid" not in told.stderr, told.stderr
    assert "onnect to the Docker daemon" in told.stderr, told.stderr


def test_apptainer_runs_in_front_of_the_command_and_takes_variables_by_prefix() -> None:
    container = Container("apptainer", "/images/sglang.sif", ("--cleanenv",))
    command = containers.run_command(
        container, ["python3", "-V"], mounts=[Mount(Path("/models"), True)], gpus=["GPU-1"]
    )
    assert command == [
        *("apptainer", "exec", "--nv", "--bind", "/models:/models:ro", "--cleanenv"),
        *("/images/sglang.sif", "python3", "-V"),
    ]
    assert containers.client_environment(container, {"A": "1,2"})["APPTAINERENV_A"] == "1,2"


def test_a_server_sees_its_model_the_files_its_flags_name_and_where_links_lead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIVOTBENCH_CACHE", str(tmp_path / "cache"))
    blobs, model, draft = tmp_path / "blobs", tmp_path / "model", tmp_path / "draft"
    for folder in (blobs, model, draft):
        folder.mkdir()
    (blobs / "1").touch()
    (model / "config.json").symlink_to(blobs / "1")
    flags = {"speculative-draft-model-path": str(draft), "tp": 2, "chat-template": "/no/such"}
    mounts = mounts_for("docker", str(model), flags, {"HF_HOME": str(tmp_path / "hub")})
    assert {m.path for m in mounts if m.read_only} == {blobs, model, draft}
    assert {m.path for m in mounts if not m.read_only} == {
        tmp_path / "hub",
        tmp_path / "cache" / "containers",
    }


def test_a_model_named_by_a_link_finds_its_files_where_their_links_lead_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIVOTBENCH_CACHE", str(tmp_path / "cache"))
    blobs, snapshot, model = (
        tmp_path / "hub" / "blobs",
        tmp_path / "hub" / "snapshots" / "a",
        tmp_path / "models",
    )
    for folder in (blobs, snapshot):
        folder.mkdir(parents=True)
    (blobs / "1").touch()
    (snapshot / "config.json").symlink_to("../../blobs/1")
    (snapshot / "gone").symlink_to("../../blobs/2")
    (snapshot / "loop").symlink_to("loop")
    model.symlink_to(snapshot)
    mounts = mounts_for("docker", str(model), {}, {"HF_HOME": str(tmp_path / "cache")})
    inside = tmp_path.parent / "blobs"  # `..` of a mounted folder, which is no link
    assert {(m.path, m.source) for m in mounts if m.read_only} == {(model, model), (inside, blobs)}
    command = containers.run_command(Container("apptainer", "a.sif"), ["python3"], mounts=mounts)
    assert f"{blobs}:{inside}:ro" in command


@pytest.mark.parametrize(
    ("runtime", "named", "told"),
    [
        ("docker", ["--gpus", '"device=GPU-b,GPU-c"'], None),
        ("apptainer", ["apptainer", "exec", "--nv"], "1,2"),
    ],
)
def test_a_server_in_a_container_gets_the_locked_gpus_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runtime: Runtime, named: list[str], told: str | None
) -> None:
    """Docker shows those by UUID; under apptainer all are seen, and CUDA is told which to use."""
    monkeypatch.setenv("PIVOTBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    gpus = [Gpu(f"GPU-{letter}", "H200", n, 1, "9.0") for n, letter in enumerate("abc")]
    image = str(tmp_path) if runtime == "apptainer" else IMAGE
    order = LaunchOrder(
        *("abc", "cell", "1:1", "sglang", "python3", "model", {}, {"A": "1"}, 2),
        *(str(tmp_path / "launch.log"), str(tmp_path / "r.json"), 60.0, 60.0),
        container=asdict(Container(runtime, image)),
    )
    command, uuids = Command(("python3", "-m", "sglang"), ("--port", "1")), ["GPU-b", "GPU-c"]
    kernels = str(tmp_path / "cache" / "kernels" / "slot")
    slot = Slot({"TVM_FFI_CACHE_DIR": kernels}, Binding((0, 1), frozenset({0, 1, 2, 8})))
    run = contained(order, Container(runtime, image), command, slot, device_variables(gpus, uuids), uuids)
    argv, environment = run.argv, run.environment
    begin = argv.index(named[0])
    assert argv[begin : begin + len(named)] == named
    assert environment.get("CUDA_VISIBLE_DEVICES") == told
    assert environment.get("APPTAINERENV_CUDA_VISIBLE_DEVICES") == told
    # The slot's kernels are seen inside, at the place its variable names, and not in the command to paste.
    assert any(kernels in word for word in argv) and kernels not in " ".join(run.shown)
    inherited = "APPTAINERENV_TVM_FFI_CACHE_DIR" if runtime == "apptainer" else "TVM_FFI_CACHE_DIR"
    assert environment[inherited] == kernels
    bound = ["--cpuset-cpus", "0-2,8", "--cpuset-mems", "0-1"]
    assert (" ".join(bound) in " ".join(argv)) == (runtime == "docker")


def test_a_servers_home_and_search_path_are_none_of_dockers_own_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    inside = {"HOME": "/inside", "PATH": "/opt/engine/bin", "LD_PRELOAD": "/opt/malloc.so", "A": "1"}
    environment = containers.client_environment(DOCKER, inside)
    assert environment["HOME"] == "/home/me" and environment["A"] == "1"
    assert environment["PATH"] == os.environ["PATH"] and "LD_PRELOAD" not in environment
    command = " ".join(containers.run_command(DOCKER, ["python3"], inside=inside))
    assert "--env PATH=/opt/engine/bin --env LD_PRELOAD=/opt/malloc.so --env A " in command


@pytest.mark.parametrize(("told", "meant"), [(137, -9), (143, -15), (1, 1), (0, 0), (255, 255)])
def test_a_signal_is_a_signal_in_a_container_too(told: int, meant: int) -> None:
    assert containers.exit_code_of_server(DOCKER, told) == meant
    assert containers.exit_code_of_server(None, told) == told


def test_an_image_is_asked_for_its_flags_once_and_again_when_it_changes(daemon: Daemon) -> None:
    installed = Installation("python3", DOCKER)
    assert known_versions(SGLANG, installed, {}) == (None, {})
    for _ in range(2):
        assert read_flags(SGLANG, installed, {}).version == "0.5.23"
    assert len(daemon.asked_for("run")) == 1
    assert known_versions(SGLANG, installed, {})[0] == "0.5.23"
    scripted.upgrade(daemon.images[IMAGE], "0.5.24")
    assert known_versions(SGLANG, installed, {})[0] is None
    assert read_flags(SGLANG, installed, {}).version == "0.5.24"
    assert not daemon.containers


def test_an_image_that_is_not_here_is_pulled_and_one_that_is_nowhere_is_named(daemon: Daemon) -> None:
    daemon.pullable["example/sglang:old"] = daemon.images[IMAGE]
    pulled = Installation("python3", Container("docker", "example/sglang:old"))
    assert flags_file(SGLANG, pulled, {}) is None
    assert read_flags(SGLANG, pulled, {}).version == "0.5.23"
    with pytest.raises(UserError, match="docker cannot pull image no/such:image"):
        read_flags(SGLANG, Installation("python3", Container("docker", "no/such:image")), {})


def test_without_docker_an_image_is_simply_not_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert containers.image_identity(DOCKER) is None
    assert not containers.exists(DOCKER, "pivotbench-1")
    with pytest.raises(UserError, match="docker cannot be started"):
        containers.fetch_image(DOCKER)

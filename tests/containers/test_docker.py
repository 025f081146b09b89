"""What docker itself makes of a launch: what a server sees, what others see of it, why one does not start."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from containers.conftest import DOCKER
from containers.docker import IMAGE, Docker
from containers.leases import ended, failed, launched, order
from pivotbench.engines import parser_flags
from pivotbench.engines.base import Command
from pivotbench.engines.sglang import SGLANG
from pivotbench.errors import UserError
from pivotbench.installations import Installation, known_versions, read_flags
from pivotbench.lease.contained import contained
from pivotbench.lease.slot import Slot
from pivotbench.machine.containers import Container

pytestmark = [*DOCKER, pytest.mark.usefixtures("folder", "real")]

# Nobody listens at that port: no network is asked.
NOWHERE = "127.0.0.1:9/no/such:image"
SECRET = "correct-horse-battery-staple"
# Tells what a server finds inside: which folders it may write to, its model, its variables, its limits.
PROBE = """
import json, os, resource, sys
def writable(folder):
    try:
        open(folder + "/new", "w").write("x")
        return True
    except OSError as error:
        return error.strerror
print(json.dumps(dict(
    writable={folder: writable(folder) for folder in sys.argv[1:]},
    weights=open(sys.argv[1] + "/weights").read(),
    environment=dict(os.environ),
    files=resource.getrlimit(resource.RLIMIT_NOFILE),
    network=os.readlink("/proc/self/ns/net"),
    ipc=os.readlink("/proc/self/ns/ipc"),
)))
"""


@dataclass(frozen=True)
class Probed:
    """What a command found that was run as a server is, by its ``places``, and by the command to paste."""

    places: dict[str, Path]
    argv: list[str]
    found: dict[str, Any]
    pasted: dict[str, Any]


@pytest.fixture(scope="module")
def probed(docker: Docker, tmp_path_factory: pytest.TempPathFactory) -> Probed:
    """A model that is a link to where a hub keeps its files, links too, and a draft in the machine's hub."""
    folder = tmp_path_factory.mktemp("probed")
    names = ("blobs", "snapshots/abc", "hub/draft", "kernels")
    blobs, snapshot, draft, kernels = (folder / name for name in names)
    for place in (blobs, snapshot, draft, kernels):
        place.mkdir(parents=True)
    (blobs / "1").write_text("tensors")
    (snapshot / "weights").symlink_to("../../blobs/1")
    model = folder / "model"
    model.symlink_to(snapshot)
    places = {"model": model, "draft": draft, "hub": folder / "hub", "kernels": kernels}
    places["home"] = folder / "cache" / "containers"
    container = Container("docker", IMAGE, ("--ulimit=nofile=500:600",))
    asked = order(
        folder,
        container,
        model=str(model),
        flags={"speculative-draft-model-path": str(draft)},
        env={"STUDY_SAYS": "a b, c"},
        secrets=["MY_LICENCE"],
    )
    told = {
        "PIVOTBENCH_CACHE": str(folder / "cache"),
        "HF_HOME": str(folder / "hub"),
        "HF_TOKEN": SECRET,
        "MY_LICENCE": SECRET,
        "OF_THE_SHELL": "1",
    }
    command = Command(("python3", "-c", PROBE, *map(str, places.values())), ())
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (told | docker.environment).items():
            patch.setenv(name, value)
        run = contained(asked, container, command, Slot({"KERNELS": str(kernels)}), {}, [])
        found = json.loads(subprocess.check_output(run.argv, env=run.environment))
        pasted = json.loads(subprocess.check_output(run.shown))
    return Probed(places, run.argv, found, pasted)


def test_models_are_read_only_inside_also_in_the_hubs_cache_and_caches_are_not(probed: Probed) -> None:
    told = {name: probed.found["writable"][str(place)] for name, place in probed.places.items()}
    refused = "Read-only file system"
    assert told == {"model": refused, "draft": refused, "hub": True, "kernels": True, "home": True}
    assert (probed.places["home"] / "new").exists(), "what is written there outlives the container"


def test_a_models_files_are_found_where_their_links_lead(probed: Probed) -> None:
    """As in the hub's cache; and the model may be named by a link to its folder there."""
    assert probed.found["weights"] == probed.pasted["weights"] == "tensors"


def test_a_server_gets_the_studys_variables_and_secrets_and_no_other_of_the_shell(probed: Probed) -> None:
    inside = probed.found["environment"]
    assert inside["STUDY_SAYS"] == "a b, c"
    assert inside["MY_LICENCE"] == inside["HF_TOKEN"] == SECRET
    assert "OF_THE_SHELL" not in inside
    assert SECRET not in " ".join(probed.argv)


@pytest.mark.parametrize("way", ["found", "pasted"])
def test_its_home_and_hub_are_the_mounted_caches_by_the_command_to_paste_too(
    probed: Probed, way: str
) -> None:
    inside = getattr(probed, way)["environment"]
    assert inside["HOME"] == str(probed.places["home"]) and inside["HF_HOME"] == str(probed.places["hub"])


def test_a_server_has_the_hosts_network_and_ipc_and_the_limits_it_asked_for(probed: Probed) -> None:
    assert probed.found["network"] == str(Path("/proc/self/ns/net").readlink())
    assert probed.found["ipc"] == str(Path("/proc/self/ns/ipc").readlink())
    assert probed.found["files"] == [500, 600]


def test_a_key_is_in_the_servers_environment_and_in_no_command_line_nor_in_what_is_left(
    folder: Path, real: Docker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_LICENCE", SECRET)
    server = launched(order(folder, Container("docker", IMAGE), "leak=MY_LICENCE", secrets=["MY_LICENCE"]))
    [name] = real.running()
    seen = json.loads(real.ask("inspect", name))[0]
    # Whoever may ask the daemon can read the environment of its containers; nothing else there tells.
    assert f"MY_LICENCE={SECRET}" in seen["Config"].pop("Env")
    assert SECRET not in json.dumps(seen)
    assert SECRET not in "".join(p.read_text(errors="replace") for p in Path("/proc").glob("[0-9]*/cmdline"))
    ended(server)
    written = {path: path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file()}
    assert [path for path, text in written.items() if SECRET in text] == []
    assert "MY_LICENCE is [redacted]" in written[folder / "logs" / "launch.log"]
    assert not real.running()


def test_an_image_without_python_is_told_in_its_inits_words(folder: Path) -> None:
    record = failed(order(folder, Container("docker", IMAGE, ("--env=PATH=/nowhere",))))
    assert record.reason is not None and record.reason["code"] == "engine_missing"
    assert "exec python3 failed: No such file or directory" in record.reason["message"]


def test_an_option_that_docker_has_not_is_told_in_its_words(folder: Path) -> None:
    record = failed(order(folder, Container("docker", IMAGE, ("--no-such-option",))))
    assert record.reason is not None and record.reason["code"] == "engine_missing"
    assert "unknown flag: --no-such-option" in record.reason["message"]


def test_a_server_that_its_memory_limit_kills_is_told_by_the_signal(folder: Path, real: Docker) -> None:
    if real.ask("info", "--format", "{{.MemoryLimit}}") != "true":
        pytest.skip("the kernel of this machine limits no container's memory")
    limits = ("--memory=12m", "--memory-swap=12m")
    record = failed(order(folder, Container("docker", IMAGE, limits)))
    assert record.exit_code == -9
    assert record.reason is not None and record.reason["code"] == "killed"


def test_docker_is_asked_by_the_users_own_context(
    folder: Path, real: Docker, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    for name in ("DOCKER_HOST", "DOCKER_CONFIG", "DOCKER_CONTEXT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(folder / "me"))
    real.ask("context", "create", "mine", "--docker", f"host={host}")
    real.ask("context", "use", "mine")
    container = Container("docker", IMAGE)
    command = Command(("python3", "-c", "print('served')"), ())
    run = contained(order(folder, container), container, command, Slot(), {}, [])
    assert subprocess.check_output(run.argv, env=run.environment, text=True) == "served\n"


def test_an_images_flags_and_version_are_its_own(real: Docker) -> None:
    installed = Installation("python3", Container("docker", IMAGE))
    catalogue = read_flags(SGLANG, installed, {})
    assert catalogue.version == "0.5.16"
    assert "attention-backend" in {flag.name for flag in catalogue.flags}
    assert known_versions(SGLANG, installed, {})[0] == "0.5.16"
    [identity] = (installed.identity(SGLANG) or [None])[2:]
    assert identity == real.ask("image", "inspect", "--format", "{{.Id}}", IMAGE)


@pytest.mark.parametrize(
    ("container", "says"),
    [
        (Container("docker", NOWHERE), f"docker cannot pull image {NOWHERE} (Error response"),
        (Container("docker", IMAGE, ("--env=PATH=/nowhere",)), "exec python3 failed"),
        (Container("docker", IMAGE, ("--no-such-option",)), "unknown flag: --no-such-option"),
    ],
)
def test_what_cannot_be_asked_for_its_flags_is_told_in_one_line(container: Container, says: str) -> None:
    with pytest.raises(UserError) as told:
        read_flags(SGLANG, Installation("python3", container), {})
    assert says in str(told.value) and "\n" not in str(told.value)


def test_a_daemon_that_does_not_answer_is_told_in_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        monkeypatch.context() as patch,
        pytest.raises(UserError, match="Cannot connect to the Docker daemon"),
    ):
        patch.setenv("DOCKER_HOST", f"unix://{folder}/none")
        read_flags(SGLANG, Installation("python3", Container("docker", IMAGE)), {})


def test_an_image_that_never_answers_leaves_no_container(
    real: Docker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parser_flags, "_TIMEOUT_SECONDS", 2)
    with pytest.raises(UserError, match="no answer within 2 s"):
        parser_flags.ask_parser(
            "sglang",
            "import time; time.sleep(60)",
            ("sglang",),
            Path("python3"),
            {},
            Container("docker", IMAGE),
        )
    assert not real.running()


def test_one_process_of_a_parallel_run_has_the_daemon(request: pytest.FixtureRequest) -> None:
    assert "PYTEST_XDIST_WORKER" not in os.environ or request.node.nodeid.endswith("@docker")

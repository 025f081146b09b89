"""A server in a container: how docker and apptainer are told to run one, find it again and end it.

Docker's containers belong to its daemon: they outlive whoever asked for them, so each is named by its launch
and ended by that name. Apptainer's are processes of the caller like any other.
Command lines as in https://docs.docker.com/reference/cli/docker/container/run/ and
https://apptainer.org/docs/user/main/cli/apptainer_exec.html; GPUs by UUID as in
https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html.
"""

from __future__ import annotations

import csv
import io
import math
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pivotbench.errors import UserError
from pivotbench.files import fingerprint
from pivotbench.machine.mounts import Mount, home, hub_cache
from pivotbench.machine.numa import Binding, in_words

# The interpreter inside an image, by its PATH.
PYTHON = "python3"
ASK_SECONDS = 30.0
# Where a container did not come to run: docker's exit codes, how its words begin, or its init's, and what
# follows them, also where it does not like its own options and says so without its name.
_NOT_STARTED = frozenset({125, 126, 127})
_REFUSALS = ("docker: ", "[FATAL tini ")
_ADVICE = "'docker run --help'"
# What a shell, and so docker, adds to a signal.
_SIGNALLED = 128
# Told docker by value, so that its own command does not heed them, and that the command to paste has them.
_BY_VALUE = frozenset({"HOME", "HF_HOME", "PATH", "LD_LIBRARY_PATH", "LD_PRELOAD"})
_STDERR = 2

Runtime = Literal["docker", "apptainer"]


@dataclass(frozen=True)
class Container:
    """An image and the runtime to start it with; ``args`` are added to the runtime's own options."""

    runtime: Runtime
    image: str
    args: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> Container | None:
        """Return the container of a launch request, None for an environment of this machine."""
        return None if data is None else cls(data["runtime"], data["image"], tuple(data.get("args", ())))


def name_of(launch_id: str) -> str:
    """Return the name of a launch's container."""
    return f"pivotbench-{launch_id}"


def variables(container: Container, env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables a server gets inside, beside those of its image."""
    if container.runtime == "apptainer":
        return dict(env)
    hub = {name: value for name, value in os.environ.items() if name.startswith("HF_")}
    return {**hub, **places(container, env), **env}


def places(container: Container, env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that lead a server to the caches that are mounted for it."""
    if container.runtime == "apptainer":
        return {}
    return {"HOME": str(home()), "HF_HOME": str(hub_cache(env))}


def client_environment(container: Container, inside: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which the runtime's own command runs, so that a server gets ``inside``.

    Values stay off the command line, but for those that docker's own command would heed: docker takes them by
    name, apptainer by their prefix.
    """
    if container.runtime == "apptainer":
        return {**os.environ, **inside, **{f"APPTAINERENV_{name}": v for name, v in inside.items()}}
    return {**os.environ, **{name: value for name, value in inside.items() if name not in _BY_VALUE}}


def run_command(
    container: Container,
    argv: Sequence[str],
    *,
    mounts: Iterable[Mount] = (),
    gpus: Sequence[str] | Literal["all"] = (),
    inside: Mapping[str, str] | None = None,
    name: str | None = None,
    binding: Binding | None = None,
) -> list[str]:
    """Return the command that runs ``argv`` in the container, in the foreground.

    ``gpus`` are UUIDs, for docker; ``inside`` are the variables that docker hands over. ``name`` is for
    docker too: apptainer's process is found by its environment. So is ``binding``, which apptainer's process
    inherits: docker's daemon starts its own.
    """
    if container.runtime == "apptainer":
        binds = [
            p for m in mounts for p in ("--bind", f"{m.source or m.path}:{m.path}" + ":ro" * m.read_only)
        ]
        return [
            *("apptainer", "exec"),
            *(["--nv"] if gpus else []),
            *binds,
            *container.args,
            container.image,
            *argv,
        ]
    options = ["--rm", "--init", "--network", "host", "--ipc", "host", "--pull", "never"]
    if name:
        options += ["--name", name]
    if gpus:
        # Docker reads this option as a line of CSV, so several devices need quotes of their own.
        options += ["--gpus", gpus if gpus == "all" else f'"device={",".join(gpus)}"']
    if binding is not None:
        options += ["--cpuset-cpus", in_words(binding.cpus), "--cpuset-mems", in_words(binding.nodes)]
    for mount in mounts:
        fields = ["type=bind", f"source={mount.source or mount.path}", f"target={mount.path}"]
        options += ["--mount", _csv(fields + ["readonly"] * mount.read_only)]
    for variable, value in (inside or {}).items():
        options += ["--env", f"{variable}={value}" if variable in _BY_VALUE else variable]
    return ["docker", "run", *options, *container.args, "--entrypoint", argv[0], container.image, *argv[1:]]


def _csv(fields: list[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(fields)
    return line.getvalue()


def image_identity(container: Container) -> str | None:
    """Return what changes when the image does: docker's id, a file's size and time; None: it is not here."""
    if container.runtime == "docker":
        told = _docker("image", "inspect", "--format", "{{.Id}}", container.image)
        return (told.stdout.strip() or None) if told is not None and told.returncode == 0 else None
    if "://" in container.image:
        return container.image
    try:
        stat = Path(container.image).stat()
    except OSError:
        return None
    return fingerprint([container.image, stat.st_size, stat.st_mtime_ns])


def fetch_image(container: Container) -> None:
    """Have docker pull an image that is not here, showing its progress; raises UserError where it cannot."""
    if container.runtime != "docker" or image_identity(container) is not None:
        return
    try:
        pulled = subprocess.run(
            ["docker", "pull", container.image],
            stdout=_STDERR,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    except OSError as error:
        raise UserError(
            f"docker cannot be started: {error.strerror}; install it or give `python:`"
        ) from error
    if pulled.returncode != 0:
        said = (pulled.stderr.strip().splitlines() or [f"exit code {pulled.returncode}"])[-1]
        raise UserError(
            f"docker cannot pull image {container.image} ({said}); check its name, the daemon and the network"
        )


def why_not_started(container: Container | None, code: int, output: Iterable[str]) -> str | None:
    """Return the line in which docker, or the init it puts before a server, says why none came to run.

    None where one did: such an exit code may be a server's own.
    """
    if container is None or container.runtime != "docker" or code not in _NOT_STARTED:
        return None
    said = [line for line in output if line.strip()]
    refusals = [line for line in said if line.startswith(_REFUSALS)]
    if not refusals and any(_ADVICE in line for line in said):
        refusals = said
    return refusals[0].removeprefix("docker: ") if refusals else None


def exit_code_of_server(container: Container | None, code: int) -> int:
    """Return a server's exit code as a process of this machine would have it: -9 for docker's 137."""
    return _SIGNALLED - code if container and code - _SIGNALLED in signal.valid_signals() else code


def main_process(container: Container, name: str) -> int | None:
    """Return the pid, on this machine, of a running docker container's first process."""
    if container.runtime != "docker":
        return None
    told = _docker("inspect", "--type", "container", "--format", "{{.State.Pid}}", name)
    pid = told.stdout.strip() if told is not None and told.returncode == 0 else ""
    return int(pid) if pid.isdigit() and pid != "0" else None


def exists(container: Container, name: str) -> bool:
    """Return whether docker still knows a container of this name, running or not."""
    if container.runtime != "docker":
        return False
    told = _docker("ps", "--all", "--quiet", "--filter", f"name=^{name}$")
    return told is not None and told.returncode == 0 and bool(told.stdout.strip())


def end(container: Container, name: str, *, grace_seconds: float) -> list[tuple[str, float]]:
    """End a docker container by stop, then kill; return the steps taken with their seconds."""
    steps: list[tuple[str, float]] = []
    whole_seconds = math.ceil(grace_seconds)
    for step, options in (("stop", ("-t", str(whole_seconds))), ("kill", ())):
        if not exists(container, name):
            break
        began = time.monotonic()
        _docker(step, *options, name, timeout_seconds=whole_seconds + ASK_SECONDS)
        _await_removal(container, name)
        steps.append((f"docker {step}", round(time.monotonic() - began, 3)))
    return steps


def remove(container: Container, name: str) -> None:
    """Have docker forget a container that was not removed with its end, or that was made meanwhile."""
    if exists(container, name):
        _docker("rm", "--force", name)


def _await_removal(container: Container, name: str) -> None:
    deadline = time.monotonic() + 2.0
    while exists(container, name) and time.monotonic() < deadline:
        time.sleep(0.1)


def _docker(*arguments: str, timeout_seconds: float = ASK_SECONDS) -> subprocess.CompletedProcess[str] | None:
    """Ask docker; None where it cannot be started or does not answer in time."""
    try:
        return subprocess.run(
            ["docker", *arguments], capture_output=True, text=True, timeout=timeout_seconds, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None

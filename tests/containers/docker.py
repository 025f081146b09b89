"""A docker daemon to test with: the one that runs here, else one of our own in a folder, ended with it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

from containers.image import root_file_system

IMAGE = "pivotbench/test:engines"
SBIN = "/usr/sbin:/sbin"
START_SECONDS = 20.0
PR_SET_PDEATHSIG = 1
# No bridge and no rule of a firewall: containers here use the host's network, as a study's do.
OPTIONS = (
    "--bridge=none",
    "--iptables=false",
    "--ip6tables=false",
    "--exec-opt=native.cgroupdriver=cgroupfs",
)
CGROUPS = Path("/sys/fs/cgroup")
# What the daemon mounts, and writes outside the folders it is given, goes with its mount namespace.
APART = """
mount -t tmpfs tmpfs "$0" && for place in etc opt run; do
    mkdir "$0/$place" "$0/$place.work"
    mount -t overlay overlay -o "lowerdir=/$place,upperdir=$0/$place,workdir=$0/$place.work" "/$place"
done
exec "$@"
"""


class NoDocker(Exception):
    """There is no docker to test with; the text says why and what to do."""


class Docker:
    """A daemon with one image, while the context is open; ``environment`` is what its clients need.

    Raises NoDocker where there is none.
    """

    def __init__(self) -> None:
        if shutil.which("docker") is None:
            raise NoDocker("no docker on this machine: apt-get install docker.io")
        self.environment: dict[str, str] = {}
        self.folder = Path(tempfile.mkdtemp(prefix="dockerd"))
        self.daemon: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Docker:
        try:
            if self._asked("info").returncode != 0:
                self._start()
            self._import()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove our image, and end the daemon where it is ours."""
        if self.daemon is None:
            self._asked("image", "rm", IMAGE)
        else:
            self.daemon.terminate()
            try:
                self.daemon.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self.daemon.kill()
                self.daemon.wait()
            for group in {*CGROUPS.glob(f"*/{self.folder.name}"), *CGROUPS.glob(self.folder.name)}:
                with contextlib.suppress(OSError):  # the kernel may still be ending what was in it
                    group.rmdir()
        shutil.rmtree(self.folder)

    def ask(self, *command: str) -> str:
        """Return what docker prints for a command."""
        told = self._asked(*command)
        assert told.returncode == 0, told.stderr
        return told.stdout.strip()

    def running(self) -> dict[str, int]:
        """Return our containers, those that have ended too: their first processes, by name."""
        names = self.ask("ps", "--all", "--filter", f"ancestor={IMAGE}", "--format", "{{.Names}}").split()
        pids = {}
        for name in names:
            with contextlib.suppress(AssertionError):  # it was removed meanwhile
                pids[name] = int(self.ask("inspect", "--format", "{{.State.Pid}}", name))
        return pids

    def _asked(self, *command: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | self.environment
        return subprocess.run(
            ["docker", *command], env=environment, capture_output=True, text=True, check=False, timeout=60
        )

    def _start(self) -> None:
        path = f"{os.environ['PATH']}:{SBIN}"
        dockerd = shutil.which("dockerd", path=path)
        if dockerd is None or os.geteuid() != 0:
            raise NoDocker(
                "no docker daemon answers `docker info`: start it, or run this as root with docker.io"
            )
        host, log = f"unix://{self.folder}/socket", self.folder / "log"
        places = [f"--{name}={self.folder / name}" for name in ("data-root", "exec-root", "pidfile")]
        apart = self.folder / "apart"
        apart.mkdir()
        with log.open("wb") as stream:
            self.daemon = subprocess.Popen(
                [
                    *("unshare", "--mount", "sh", "-c", APART, str(apart)),
                    *(dockerd, *OPTIONS, *places, f"--cgroup-parent=/{self.folder.name}", f"--host={host}"),
                ],
                env=os.environ | {"PATH": path},
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                preexec_fn=_die_with_parent,
            )
        self.environment = {"DOCKER_HOST": host}
        deadline = time.monotonic() + START_SECONDS
        while self._asked("info").returncode != 0:
            if self.daemon.poll() is not None or time.monotonic() > deadline:
                said = log.read_text().strip().splitlines()[-1:]
                raise NoDocker(f"dockerd does not start here: {' '.join(said)}")
            time.sleep(0.1)

    def _import(self) -> None:
        archive = self.folder / "image.tar"
        root_file_system(archive)
        self._must("import", "--change", "ENV PYTHONPATH=/opt/site", str(archive), IMAGE)
        archive.unlink()
        self._must("run", "--rm", "--network", "host", IMAGE, "python3", "-c", "")

    def _must(self, *command: str) -> None:
        try:
            tried = self._asked(*command)
        except subprocess.TimeoutExpired as error:
            raise NoDocker(f"docker {command[0]} hangs here: {error}") from error
        if tried.returncode != 0:
            raise NoDocker(f"docker {command[0]} does not work here: {' '.join(tried.stderr.split())[:300]}")


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

"""Starts a one-node SLURM in a folder and ends it: munged, slurmctld and slurmd as children, on loopback."""

from __future__ import annotations

import contextlib
import ctypes
import getpass
import os
import platform
import shutil
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil

HERE = Path(__file__).parent
DAEMONS = ("munged", "slurmctld", "slurmd")
COMMANDS = ("sbatch", "scontrol", "squeue", "scancel", "sinfo")
PR_SET_PDEATHSIG = 1
FREEZER = Path("/sys/fs/cgroup/freezer")
START_SECONDS = 30.0
SBIN = "/usr/sbin:/usr/bin:/sbin:/bin"


def missing() -> list[str]:
    """Return which of SLURM's programs are not installed."""
    path = f"{os.environ['PATH']}:{SBIN}"
    return [name for name in (*DAEMONS, *COMMANDS) if shutil.which(name, path=path) is None]


class Slurm:
    """A running cluster; ``environment`` is what its commands and a run on it need."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}
        self.conf = folder / "slurm.conf"
        self.environment = {
            "PATH": f"{os.environ['PATH']}:{SBIN}",
            "SLURM_CONF": str(self.conf),
        }

    def start(self) -> None:
        """Write the configuration, start the three daemons, wait until the node is idle."""
        for name in ("state", "spool"):
            (self.folder / name).mkdir(parents=True)
        self.folder.chmod(0o755)
        self._write_configuration()
        self._start_munged()
        self._start("slurmctld", "-D", "-f", str(self.conf))
        self.start_node()
        self.until_node("idle")

    def start_node(self) -> None:
        """Start the node's daemon."""
        self._start("slurmd", "-D", "-f", str(self.conf), "-N", "node")

    def stop(self) -> None:
        """End what was started here, by its process ids, and wait for the daemons."""
        for daemon in reversed(self.daemons.values()):
            daemon.terminate()
        for daemon in self.daemons.values():
            try:
                daemon.wait(timeout=15)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self._kill(self._watchers())  # one tries for long to report the end of its job

    def ask(self, *command: str) -> str:
        """Run one of SLURM's commands to its end and return what it printed."""
        environment = {**os.environ, **self.environment}
        return subprocess.run(
            command, env=environment, text=True, check=True, capture_output=True, timeout=30
        ).stdout.strip()

    def jobs(self, states: str = "all") -> list[str]:
        """Return the ids of jobs in these states (``RUNNING``, ``PENDING``, ``all``), oldest first."""
        return sorted(self.ask("squeue", "--noheader", "--states", states, "--format=%i").split(), key=int)

    def state(self, job: str) -> str:
        """Return a job's state, that of a finished one too."""
        return self.ask("squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%T")

    def cancel_all(self) -> None:
        """End every job."""
        for job in self.jobs("RUNNING,PENDING"):
            self.ask("scancel", job)

    def until_node(self, state: str) -> None:
        """Wait until the node is in a state that begins with ``state``."""
        self._until(lambda: self.ask("sinfo", "--noheader", "--format=%T").startswith(state), f"node {state}")

    def kill_node(self) -> None:
        """End the node as a power cut does: its daemon, those that watch over jobs, then the jobs."""
        node = self.daemons.pop("slurmd")
        jobs = self._started_here(lambda process: "SLURM_JOB_ID" in process.environ())
        watchers = {watcher for job in jobs for watcher in _watchers_above(job)}
        node.kill()
        node.wait()
        self._kill([*watchers, *jobs])

    def _watchers(self) -> list[psutil.Process]:
        return self._started_here(lambda process: process.name() == "slurmstepd")

    def _started_here(self, wanted: Callable[[psutil.Process], bool]) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):  # it has ended meanwhile, or is another user's
                if process.environ().get("SLURM_CONF") == str(self.conf) and wanted(process):
                    found.append(process)
        return found

    def _kill(self, processes: list[psutil.Process]) -> None:
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def _start(self, name: str, *arguments: str) -> None:
        path = shutil.which(name, path=self.environment["PATH"])
        assert path is not None
        with (self.folder / f"{name}.log").open("ab") as log:
            self.daemons[name] = subprocess.Popen(
                [path, *arguments],
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=_die_with_parent,
            )

    def _start_munged(self) -> None:
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(stat.S_IRUSR | stat.S_IWUSR)
        files = {"key-file": "key", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        options = [f"--{option}={self.folder}/munge.{name}" for option, name in files.items()]
        socket_path = self.folder / "munge.socket"
        self._start("munged", "--foreground", "--force", f"--socket={socket_path}", *options)
        self._until(socket_path.exists, "munged listening")

    def _write_configuration(self) -> None:
        values = {
            "folder": self.folder,
            "host": platform.node().split(".")[0],
            "user": getpass.getuser(),
            "tracking": "cgroup" if os.access(FREEZER, os.W_OK) else "linuxproc",
            "cpus": os.cpu_count(),
            "controller_port": _free_port(),
            "node_port": _free_port(),
        }
        self.conf.write_text((HERE / "slurm.conf.in").read_text().format(**values))
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
        (self.folder / "gres.conf").write_text("AutoDetect=off\nNodeName=node Name=gpu File=/dev/null\n")
        # What only the node has: a GPU, by a pynvml that tells of one.
        _script(self.folder / "task-prolog", f"echo export PYTHONPATH={HERE / 'node'}")

    def _until(self, claim: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            with contextlib.suppress(subprocess.CalledProcessError):
                if claim():
                    return
            time.sleep(0.1)
        logs = "".join(p.read_text()[-2000:] for p in self.folder.glob("*.log"))
        raise AssertionError(f"never happened: {what}\n{logs}")


def _watchers_above(job: psutil.Process) -> list[psutil.Process]:
    with contextlib.suppress(psutil.NoSuchProcess):
        return [parent for parent in job.parents() if parent.name() == "slurmstepd"]
    return []


def _script(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

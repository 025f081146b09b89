"""Daemons to run containers with: one that stands for docker's, and docker's own where it can be had."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import scripted
from containers.docker import IMAGE, Docker, NoDocker
from containers.leases import LEASED
from pivotbench.lease.ensure import stop
from pivotbench.lease.sweep import sweep_stale
from pivotbench.machine.containers import Container
from scripted.containers.daemon import Daemon

# One process of a parallel run has the daemon.
DOCKER = [pytest.mark.docker, pytest.mark.xdist_group("docker")]
REAL = pytest.param("real", marks=DOCKER)


@dataclass(frozen=True)
class Runtime:
    """A container that serves, and which containers there are: their first processes, by name."""

    container: Container
    running: Callable[[], dict[str, int]]


@pytest.fixture(scope="session")
def docker() -> Iterator[Docker]:
    """Docker's own daemon with an image of this machine's Python and two engines."""
    try:
        with Docker() as daemon:
            yield daemon
    except NoDocker as why:
        pytest.skip(str(why))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with locks and caches of the test's own."""
    monkeypatch.setenv("PIVOTBENCH_LOCKS", str(tmp_path / "locks"))
    monkeypatch.setenv("PIVOTBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    return tmp_path


@pytest.fixture
def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemon]:
    """A daemon that stands for docker's, whose image is an environment in ``folder / "new"``."""
    scripted.install(folder / "new", "0.5.23")
    with Daemon({IMAGE: folder / "new"}) as daemon:
        _tell(daemon.environment, monkeypatch)
        yield daemon
        _end_all()


@pytest.fixture
def real(docker: Docker, monkeypatch: pytest.MonkeyPatch) -> Iterator[Docker]:
    """Docker's own daemon, told to what the test starts; ``folder`` goes with it."""
    _tell(docker.environment, monkeypatch)
    yield docker
    _end_all()
    assert not docker.running()


@pytest.fixture(params=["stand_in", REAL])
def runtime(request: pytest.FixtureRequest) -> Runtime:
    """One daemon, then the other: what is claimed of containers holds with both."""
    daemon: Daemon | Docker = request.getfixturevalue(request.param)
    return Runtime(Container("docker", IMAGE), daemon.running)


def _tell(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


def _end_all() -> None:
    while LEASED:
        LEASED.pop().release()
    stop(grace_seconds=0.5)
    sweep_stale()

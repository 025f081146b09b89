"""One SLURM for all tests here; where its packages are not installed, they are skipped and say so."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest

from cluster.slurm import Slurm, missing

PLUGINS = ("snakemake_executor_plugin_slurm", "snakemake_executor_plugin_cluster_generic")


def _lacking() -> str | None:
    programs = missing()
    if programs:
        packages = "apt-get install slurmctld slurmd slurm-client munge"
        return f"no SLURM on this machine ({', '.join(programs)} missing): {packages}"
    plugins = [name for name in PLUGINS if importlib.util.find_spec(name) is None]
    return f"no {', '.join(plugins)}: make cluster" if plugins else None


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """A running cluster of one node with one GPU."""
    lacking = _lacking()
    if lacking:
        pytest.skip(lacking)
    cluster = Slurm(tmp_path_factory.mktemp("slurm"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()

"""The Kubernetes profile without a Kubernetes: the manifests, and a run with a kubectl of ours."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cluster.campaign import PROFILES, edited_profile, one_of_each_phase
from cluster.slurm import HERE
from pivotbench.cluster.walltime import stage_minutes
from pivotbench.results import STAGES
from pivotbench.study import load_study
from workflow.campaign import Folder

PROFILE = PROFILES / "kubernetes"
PLUGIN = "snakemake_executor_plugin_cluster_generic"
CELL = "results/small/backends/good/r1/teardown.json"


class PodFolder(Folder):
    """A working folder whose runs hand their jobs to the test's kubectl."""

    def environment(self, *, real_cache: bool = False) -> dict[str, str]:
        """The environment of the submitting machine, which has no GPU; kubectl keeps its pods in pods/."""
        (self.path / "pods").mkdir(exist_ok=True)
        return super().environment(real_cache=real_cache) | {
            "PATH": f"{HERE / 'kubernetes'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PODS": str(self.path / "pods"),
            "PODS_PYTHONPATH": str(HERE / "node"),
        }

    def command(self, *arguments: str, config: tuple[str, ...] = ()) -> list[str]:
        """The command line of one run."""
        command = super().command(*arguments, config=config)
        at = command.index("--cores")
        command[at : at + 2] = ["--workflow-profile", str(edited_profile("kubernetes", self.path))]
        return command

    def pods(self) -> list[dict[str, Any]]:
        """The Jobs that were created."""
        return [json.loads(path.read_text()) for path in sorted((self.path / "pods").glob("*.json"))]


@pytest.fixture
def folder(tmp_path: Path) -> PodFolder:
    folder = PodFolder.create(tmp_path / "pods-of")
    folder.write(one_of_each_phase(folder.path))
    return folder


@pytest.mark.cluster
@pytest.mark.skipif(importlib.util.find_spec(PLUGIN) is None, reason=f"no {PLUGIN}: make cluster")
def test_a_cell_is_one_job_with_the_studys_gpus_and_time(folder: PodFolder) -> None:
    planned = folder.snakemake("all", "--dry-run")
    assert planned.code == 0, planned.text
    assert not folder.pods()
    run = folder.snakemake(CELL)
    assert run.code == 0, run.text + "".join(p.read_text() for p in (folder.path / "pods").glob("*.log"))
    [job] = folder.pods()
    study = load_study(folder.path / "study.yaml")
    assert job["spec"]["activeDeadlineSeconds"] == 60 * sum(stage_minutes(study, stage) for stage in STAGES)
    assert job["spec"]["backoffLimit"] == 0
    pod = job["spec"]["template"]["spec"]
    assert pod["restartPolicy"] == "Never"
    [container] = pod["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "1", "memory": "300M"}
    assert container["workingDir"] == str(folder.path)
    # Keys come to a cell from a Secret alone, where there is one: a manifest holds none.
    assert container["envFrom"] == [{"secretRef": {"name": "pivotbench-secrets", "optional": True}}]
    assert [entry["name"] for entry in container["env"]] == ["PIVOTBENCH_CACHE"]
    launch = json.loads((folder.cell("good") / "launch.json").read_text())
    assert [gpu["name"] for gpu in launch["environment"]["gpus"]] == ["Paper GPU"]


def ask(folder: PodFolder, script: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run one of the profile's scripts."""
    return subprocess.run(
        [str(PROFILE / script), *words],
        cwd=folder.path,
        env=folder.environment(),
        text=True,
        capture_output=True,
        check=False,
    )


def test_a_job_that_kubernetes_lost_or_ended_is_failed_with_its_reason(folder: PodFolder) -> None:
    lost = ask(folder, "status.sh", "pivotbench-9")
    assert (lost.stdout, lost.stderr) == ("failed\n", "Kubernetes job pivotbench-9: Failed: it was deleted\n")
    (folder.path / "pods" / "pivotbench-1.json").write_text("{}")
    assert ask(folder, "status.sh", "pivotbench-1").stdout == "running\n"
    (folder.path / "pods" / "pivotbench-1.rc").write_text("137\n")
    ended = ask(folder, "status.sh", "pivotbench-1")
    assert ended.stdout == "failed\n"
    assert "BackoffLimitExceeded" in ended.stderr


def test_a_path_that_a_manifest_cannot_hold_is_refused_and_nothing_submitted(folder: PodFolder) -> None:
    refused = ask(folder, "submit.sh", "1", "8", "300", "5", "/tmp/with space/job.sh")
    assert refused.returncode == 2
    assert "/tmp/with space/job.sh: only letters" in refused.stderr
    assert not folder.pods()

"""Campaigns on the test's SLURM: Snakemake on a login node without a GPU, scripted servers on the node."""

from __future__ import annotations

import contextlib
from datetime import datetime
from pathlib import Path
from typing import Any

from cluster.slurm import HERE, Slurm
from pivotbench.files import read_json
from workflow.campaign import ROOT, Folder, small_study

PROFILES = ROOT / "workflow" / "profiles"
# What a user would edit in a profile, and waits as short as a test wants them.
EDITS = {
    "latency-wait: 60": "latency-wait: 10",
    "seconds-between-status-checks: 20": "seconds-between-status-checks: 1",
    "before-status-checks: 20": "before-status-checks: 1",
    "slurm-status-command: sacct": "slurm-status-command: squeue",
    "'gpu'": "'ci'",
    "mem_mb: 64000": "mem_mb: 300",
    "cpus_per_task: 8": "cpus_per_task: 1",
    "workflow/profiles/": f"{PROFILES}/",
}


def edited_profile(name: str, folder: Path) -> Path:
    """Write a profile as it is delivered, but for EDITS, into ``folder``; return where it lies."""
    text = (PROFILES / name / "config.yaml").read_text()
    for delivered, wanted in EDITS.items():
        text = text.replace(delivered, wanted)
    edited = folder / "profile"
    edited.mkdir(exist_ok=True)
    (edited / "config.yaml").write_text(text)
    return edited


def six_configurations(folder: Path) -> dict[str, Any]:
    """Three that work, one that crashes at launch, two that answer garbage; each server on one GPU.

    Of those that work one is so much faster that no noise of a busy machine makes another one win.
    """
    study = small_study(folder)
    backends = study["backends"]
    backends["other"] = {"attention-backend": "fa3", "script-token-seconds": 0.15}
    backends["newlines"] = {"attention-backend": "flashinfer", "script": ["garbage=newlines"]}
    for name in ("garbage", "newlines"):  # they are found out early: slow enough to be ended before
        backends[name]["script-token-seconds"] = 0.15
    del study["speculative"]
    study["hosts"]["gpus"] = 1
    return study


def one_of_each_phase(folder: Path) -> dict[str, Any]:
    """One backend and one speculation on it, on one GPU: three cells and two races."""
    study = small_study(folder)
    study["backends"] = {"good": study["backends"]["good"]}
    study["hosts"]["gpus"] = 1
    return study


class ClusterFolder(Folder):
    """A working folder whose runs go to a SLURM, by one of the profiles."""

    slurm: Slurm
    profile = "slurm"

    def environment(self, *, real_cache: bool = False) -> dict[str, str]:
        """The environment of the login node."""
        return super().environment(real_cache=real_cache) | self.slurm.environment

    def command(self, *arguments: str, config: tuple[str, ...] = ()) -> list[str]:
        """The command line of one run."""
        command = super().command(*arguments, config=config)
        at = command.index("--cores")
        command[at : at + 2] = ["--workflow-profile", str(edited_profile(self.profile, self.path))]
        return command

    def launched(self) -> set[str]:
        """The configurations of phase one whose server came up and whose cell is not over."""
        up = set()
        for file in (self.results / "backends").glob("*/r1/launch.json"):
            with contextlib.suppress(FileNotFoundError):  # of a cell that was killed: taken away meanwhile
                up |= {file.parts[-3]} if read_json(file)["status"] == "ok" else set()
        return up - self.finished()

    def finished(self, stage: str = "teardown") -> set[str]:
        """The configurations of phase one that have this stage's file."""
        return {path.parts[-3] for path in (self.results / "backends").glob(f"*/r1/{stage}.json")}


class LocalFolder(Folder):
    """The same study run by hand on a machine with the node's GPU."""

    def environment(self, *, real_cache: bool = False) -> dict[str, str]:
        """The environment of the node, without a scheduler."""
        return super().environment(real_cache=real_cache) | {"PYTHONPATH": str(HERE / "node")}


def busy(cell: Path) -> tuple[datetime, datetime]:
    """When a cell began and ended, by its own files."""
    launch, teardown = read_json(cell / "launch.json"), read_json(cell / "teardown.json")
    return datetime.fromisoformat(launch["started"]), datetime.fromisoformat(teardown["ended"])

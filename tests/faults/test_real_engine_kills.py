"""The real engine: whoever is killed, nothing is left, and a rerun ends with an undisturbed run's files."""

from __future__ import annotations

import copy
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from faults.leases import RELEASE_SECONDS, until
from faults.soak.campaigns import stage_of
from faults.soak.files import content
from faults.soak.processes import leaks, parties
from pivotbench.files import read_json
from pivotbench.lease.processes import Identity, marked_processes
from pivotbench.results import STAGES
from pivotbench.study import load_study
from workflow.campaign import ROOT, Folder

# One process runs them all: they share the undisturbed run.
pytestmark = [
    pytest.mark.engine,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("real engine"),
]
CELL = "results/small/backends/flash-on/r1/teardown.json"


class RealFolder(Folder):
    """A working folder that uses the engine and the model of this user's cache."""

    def environment(self, *, real_cache: bool = True) -> dict[str, str]:
        """The environment Snakemake runs in."""
        return super().environment(real_cache=real_cache)

    def snakemake(self, *arguments: str, config: tuple[str, ...] = (), real_cache: bool = True) -> Any:
        """Run Snakemake to its end."""
        return super().snakemake(*arguments, config=config, real_cache=real_cache)

    def victims(self, who: str, run: int) -> list[Identity]:
        """The process to kill: of Snakemake, of the supervisor, or of the engine."""
        if who == "snakemake":
            return [i for i in [Identity.of(run)] if i]
        if who == "supervisor":
            return parties(self.path)["supervisor"]
        return [p for p, value in marked_processes().items() if str(self.path) in value]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[RealFolder, set[str]]:
    """A short study of one backend, and the files that a run of it leaves."""
    default = load_study(ROOT / "config" / "config.yaml").source
    assert default is not None
    study: dict[str, Any] = copy.deepcopy(default.data)
    study["name"] = "small"
    study["backends"] = {"flash-on": study["backends"]["flash-on"]}
    del study["speculative"]
    study["smoke"]["continuations"] = str(ROOT / "config" / "prompts" / "continuations.jsonl")
    study["throughput"] |= {"seconds": 1, "min_requests": 2}
    study["throughput"]["workloads"] = {
        "text": study["throughput"]["workloads"]["repetitive"]
        | {
            "prompts": str(ROOT / "config" / "prompts" / "copying.jsonl"),
            "output_tokens": 48,
            "concurrency": [1],
        }
    }
    study["decision"] |= {
        "metric": {"workloads": {"text": 1}, "concurrency": 1},
        "rounds": {"min": 1, "max": 1},
    }
    folder = RealFolder(tmp_path_factory.mktemp("real-kills"))
    folder.write(study)
    run = folder.snakemake(CELL)
    assert run.code == 0, run.text
    return folder, set(content(folder.results))


@pytest.fixture
def folder(undisturbed: tuple[RealFolder, set[str]]) -> Iterator[RealFolder]:
    """The same folder, without any result."""
    folder, _ = undisturbed
    for name in ("results", ".snakemake"):
        shutil.rmtree(folder.path / name)
    yield folder
    assert not leaks(folder.path)


@pytest.mark.parametrize("stage", ["launch", "throughput"])
@pytest.mark.parametrize("who", ["snakemake", "supervisor", "engine"])
def test_a_kill_leaves_nothing_and_a_rerun_ends_with_the_same_files(
    folder: RealFolder, undisturbed: tuple[RealFolder, set[str]], who: str, stage: str
) -> None:
    run, log = folder.start(CELL), folder.path / "run.log"

    def reached() -> bool:
        at = stage_of(folder.path)
        loaded = stage != "throughput" or "throughput: text at concurrency 1: warming up" in log.read_text()
        return at is not None and at[0] == stage and loaded and bool(folder.victims(who, run.pid))

    assert until(reached, 120), log.read_text()
    time.sleep(0.2)
    for victim in folder.victims(who, run.pid):
        os.kill(victim.pid, signal.SIGKILL)
    code = run.wait(timeout=120)
    assert (code == -signal.SIGKILL) is (who == "snakemake"), log.read_text()
    assert until(lambda: not leaks(folder.path), RELEASE_SECONDS), leaks(folder.path)
    again = folder.snakemake(CELL)
    assert again.code == 0, again.text
    assert set(content(folder.results)) == undisturbed[1]
    for name in STAGES:
        assert read_json(folder.cell("flash-on") / f"{name}.json")["status"] == "ok", name
    assert Path(folder.path / CELL).is_file()

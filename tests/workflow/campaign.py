"""A small campaign on the scripted server, run by Snakemake for real, in a folder of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
SCRIPTED = ROOT / "tests" / "scripted" / "bin" / "python3"
CRASH = """\
[2026-01-01 00:00:00] INFO load weights begin
[2026-01-01 00:00:01] ERROR RuntimeError: none of the configured backends are usable on sm120
[2026-01-01 00:00:02] ERROR Received sigquit from a child process. It usually means the child failed.
"""
# Up to the decision: charts and a report cost as much time again, and say nothing of what ran.
DECISION = "results/small/decision.json"
FINISHED = re.compile(r"^Finished jobid: \d+ \(Rule: (\w+)\)$", re.MULTILINE)
PLANNED = re.compile(r"^(\w+) +(\d+)$", re.MULTILINE)


def small_study(folder: Path) -> dict[str, Any]:
    """Two backends that work, one that crashes at launch, one that answers garbage, one speculation."""
    return {
        "name": "small",
        "engine": "sglang",
        "python": str(SCRIPTED),
        "model": "scripted/model",
        # Gaps between tokens that a busy machine's client still times well: a round it spoils is not ranked.
        "serve": {"script-token-seconds": 0.05, "script-events": str(folder / "events")},
        "backends": {
            "good": {"attention-backend": "fa3"},
            "slow": {"attention-backend": "triton", "script-token-seconds": 0.12},
            "crash": {
                "moe-runner-backend": "flashinfer_trtllm",
                "script": ["crash", f"crash-log={folder / 'crash.log'}"],
            },
            "garbage": {"attention-backend": "flashinfer", "script": ["garbage=bang"]},
        },
        "speculative": {
            "ngram": {
                "speculative-algorithm": "NGRAM",
                "speculative-num-draft-tokens": 4,
                "script-acceptance": ["2.5"],
            },
        },
        "smoke": {"max_tokens": 16, "repeats": 1, "prompts": [{"ask": "What is 2+2?", "contains": "4"}]},
        "throughput": {
            "seconds": 0.5,
            "windows": 2,
            "min_requests": 2,
            "workloads": {
                "text": {
                    "kind": "text",
                    "prompts": "prompts.jsonl",
                    "output_tokens": 8,
                    "concurrency": [1],
                },
            },
        },
        "decision": {
            "metric": {"workloads": {"text": 1}, "concurrency": 1},
            "margin": 0.1,
            "confidence": 0.9,
            "rounds": {"min": 1, "max": 1},
        },
        "hosts": {"gpus": 0, "launch_timeout_seconds": 20, "slot_wait_seconds": 60},
    }


@dataclass(frozen=True)
class Run:
    """What one Snakemake run did: its exit code, its words, and all of Snakemake's in its log file."""

    code: int
    text: str
    log: str = ""

    @property
    def jobs(self) -> Counter[str]:
        """How often each rule ran."""
        return Counter(name for name in FINISHED.findall(self.log) if name != "all")

    @property
    def planned(self) -> Counter[str]:
        """How often each rule would run, as a dry run counts them."""
        table = self.text.rpartition("Job stats:")[2].partition("Reasons:")[0]
        return Counter({name: int(count) for name, count in PLANNED.findall(table) if name != "total"})

    def cell_jobs(self) -> Counter[str]:
        """Jobs of the four stages alone."""
        return Counter(
            {k: v for k, v in self.jobs.items() if k in ("launch", "smoke", "throughput", "teardown")}
        )


class Folder:
    """A working folder with a study in it, and Snakemake to run there."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path) -> Folder:
        """Make the folder with the small study and a few prompts."""
        path.mkdir(parents=True, exist_ok=True)
        prompts = [f'{{"id": "p{n}", "prompt": "Tell me about number {n}."}}' for n in range(6)]
        (path / "prompts.jsonl").write_text("\n".join(prompts) + "\n")
        (path / "crash.log").write_text(CRASH)
        folder = cls(path)
        folder.write(small_study(path))
        return folder

    def study(self) -> dict[str, Any]:
        """Return the study as it stands."""
        study: dict[str, Any] = yaml.safe_load((self.path / "study.yaml").read_text())
        return study

    def write(self, study: dict[str, Any]) -> None:
        """Replace the study."""
        (self.path / "study.yaml").write_text(yaml.safe_dump(study, sort_keys=False))

    def environment(self, *, real_cache: bool = False) -> dict[str, str]:
        """The environment Snakemake runs in: locks of this folder's own, and a cache unless the real one.

        Temporary files go beside the folder: what a killed Snakemake leaves there goes with the test.
        """
        temporary = self.path.with_name(f"{self.path.name}-tmp")
        temporary.mkdir(exist_ok=True)
        environment = {
            **os.environ,
            "TMPDIR": str(temporary),
            "PIVOTBENCH_LOCKS": str(self.path / "locks"),
            "PIVOTBENCH_TEST_PYTHON": sys.executable,
            "CI": "",
        }
        return environment if real_cache else environment | {"PIVOTBENCH_CACHE": str(self.path / "cache")}

    def command(self, *arguments: str, config: tuple[str, ...] = ()) -> list[str]:
        """The command line of one run."""
        return [
            *(sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile")),
            *("--cores", "1", "--nocolor"),
            *arguments,
            *("--config", "study=study.yaml", *config),
        ]

    def snakemake(self, *arguments: str, config: tuple[str, ...] = (), real_cache: bool = False) -> Run:
        """Run Snakemake to its end."""
        before = self.logs()
        done = subprocess.run(
            self.command(*arguments, config=config),
            cwd=self.path,
            env=self.environment(real_cache=real_cache),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=240,
            check=False,
        )
        return Run(
            done.returncode, done.stdout, "".join(log.read_text() for log in self.logs() if log not in before)
        )

    def logs(self) -> list[Path]:
        """The log files of Snakemake's runs here, oldest first; dry runs have none."""
        return sorted((self.path / ".snakemake" / "log").glob("*.snakemake.log"))

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start Snakemake in a session of its own and return at once."""
        with (self.path / "run.log").open("w") as log:
            return subprocess.Popen(
                self.command(*arguments),
                cwd=self.path,
                env=self.environment(),
                text=True,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def events(self) -> Path:
        """Where the scripted servers of the study tell of their starts and stops."""
        return Path(self.study()["serve"]["script-events"])

    @property
    def results(self) -> Path:
        """The study's results."""
        return self.path / "results" / "small"

    def cell(self, configuration: str, round_number: int = 1, phase: str = "backends") -> Path:
        """A cell's folder."""
        return self.results / phase / configuration / f"r{round_number}"

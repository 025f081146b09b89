"""A finished campaign of any size on disk: stage files, races, decision, and Snakemake's own records.

The stage files are those of tests/factory.py, as large as real ones of SGLang: settings in effect as a real
server reported them, answers with token ids and logprobs. Their fingerprints are the study's, so that the
workflow takes them for its own.
"""

from __future__ import annotations

import contextlib
import os
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import orjson
from benchmarks.scale.spent import spent

from factory import Cell, Drafts, noisy, smoke_prompt, stage_files
from pivotbench.campaign import Campaign
from pivotbench.cells import launch_request, stage_fingerprint
from pivotbench.charts.page import vega
from pivotbench.decision.racing import judge_round
from pivotbench.decision_rules import DecisionRules
from pivotbench.engines.sglang import effective
from pivotbench.evidence import CellFiles
from pivotbench.files import read_json, write_json
from pivotbench.rounds import base_memory
from pivotbench.study import load_study
from workflow.campaign import ROOT, Folder

INFO = ROOT / "tests" / "data" / "sglang-logs" / "8b-fp8.info.json"
AGGREGATES = ("race", "measurements", "decide", "charts", "report")
LOADS = (("chat", 1), ("chat", 16), ("code", 1), ("code", 16))
ASKED = ("What is 2+2?", "Name the capital of France.", "Count to ten.", "Say hello to a friend.")
ANSWER = "The answer to this question is 4, and here is how one comes to it step by step: " * 3
LOGPROBS = tuple(-0.1 - 0.01 * n for n in range(40))


@dataclass(frozen=True)
class Size:
    """So many configurations in so many rounds, all of both phases together: the cells are the product."""

    configurations: int
    rounds: int

    @classmethod
    def of(cls, cells: int) -> Size:
        """Return the size of a campaign of ``cells``: five rounds, two where it is small."""
        rounds = 5 if cells >= 100 else 2
        return cls(cells // rounds, rounds)

    @property
    def backends(self) -> int:
        """The configurations of phase one; phase two has the baseline and one draft."""
        return self.configurations - 2


def study(size: Size) -> dict[str, Any]:
    """Return a study on the scripted server whose race asks for every configuration in every round."""
    text = {"kind": "text", "prompts": "prompts.jsonl", "output_tokens": 96, "concurrency": [1, 16]}
    return {
        "name": "small",
        "engine": "sglang",
        "python": str(ROOT / "tests" / "scripted" / "bin" / "python3"),
        "model": "scripted/model",
        "serve": {"script-token-seconds": 0.01},
        "backends": {
            "matrix": {"mem-fraction-static": [round(0.4 + 0.0001 * n, 4) for n in range(size.backends)]}
        },
        "speculative": {
            "ngram": {"speculative-algorithm": "NGRAM", "speculative-num-draft-tokens": 4},
        },
        "smoke": {"max_tokens": 64, "repeats": 2, "prompts": [{"ask": ask} for ask in ASKED]},
        "throughput": {
            "seconds": 4,
            "windows": 3,
            "min_requests": 8,
            "workloads": dict.fromkeys(dict(LOADS), text),
        },
        "decision": {
            "metric": {"workloads": {"chat": 1, "code": 1}, "concurrency": 1},
            "margin": 0.02,
            "confidence": 0.95,
            "rounds": {"min": size.rounds, "max": size.rounds},
        },
        "hosts": {"gpus": 0, "launch_timeout_seconds": 20, "slot_wait_seconds": 60},
    }


def write_campaign(path: Path, size: Size) -> Folder:
    """Write the study, every stage file and every race into a new folder; nothing is decided yet."""
    folder = Folder.create(path)
    folder.write(study(size))
    folder.snakemake("results/small/engine.json")
    with inside(folder):
        campaign = Campaign(study=load_study(Path("study.yaml")), root=ROOT)
        _play(campaign, size)
        vega()  # bundled for the first chart on a machine, and kept
    return folder


def record(folder: Folder) -> None:
    """Have Snakemake record races, decision, charts and report as its own, and what they were made of.

    Touching is its own way of saying that outputs are good; afterwards it knows of them what it would know
    had it made them. The pause it makes between two jobs is left out, and so are the cells' stages, whose
    graph would cost more than all that is measured here: theirs are taken as those of results from elsewhere.
    """
    touch = (
        "import sys, snakemake.cli, snakemake.executors.touch as t; t.Executor.SLEEPING_TIME = 0; "
        "snakemake.cli.main(sys.argv[1:])"
    )
    arguments = ("all", "--touch", "--forceall", "--quiet", "--allowed-rules", "all", *AGGREGATES)
    spent([sys.executable, "-c", touch, *folder.command(*arguments)[3:]], folder.path, folder.environment())


@contextlib.contextmanager
def inside(folder: Folder) -> Iterator[None]:
    """Work in the folder as a run of Snakemake would."""
    kept, here = dict(os.environ), Path.cwd()
    os.environ.update(folder.environment())
    os.chdir(folder.path)
    try:
        yield
    finally:
        os.chdir(here)
        os.environ.clear()
        os.environ.update(kept)


def _play(campaign: Campaign, size: Size) -> None:
    rules = DecisionRules.from_study(campaign.study)
    environment = campaign._present(None)
    told = effective(read_json(INFO))
    races: list[dict[str, Any]] = []
    base = None
    for phase in campaign.phases:
        names: Sequence[str] = campaign.contenders(phase, base)
        stored: list[CellFiles] = []
        for round_ in range(1, size.rounds + 1):
            stored += [_write(campaign, phase, name, round_, environment, told) for name in names]
            race = judge_round(rules, phase, round_, stored, races)
            write_json(campaign.race_file(phase, round_), race)
            races.append(race)
            names = race["next"]
        if phase == "backends":
            base = races[-1]["base"]
            write_json(base_memory(campaign), {"base": base})


@cache
def _answers() -> list[dict[str, Any]]:
    return [smoke_prompt(ask, ANSWER, ANSWER, contains="4", gap_nats=2.0) for ask in ASKED]


def _write(
    campaign: Campaign, phase: str, name: str, round_: int, environment: Any, told: dict[str, Any]
) -> CellFiles:
    cell = campaign.cell(phase, name, round_)
    request = launch_request(campaign.study, cell)
    drafts = {w: Drafts(900, 500, counted=True) for w in dict(LOADS)} if name.endswith("+ngram") else {}
    # Uniform over ten per cent, launches spread by one.
    truth = 100 * (1 + 0.1 * random.Random(name.partition("+")[0]).random())
    speed = noisy(truth, 0.01, name, round_)
    made = Cell(
        phase,
        name,
        round_,
        tok_s={(w, c): speed * (1.2 if drafts else 1.0) * c**0.8 for w, c in LOADS},
        drafts=drafts,
        flags=request["flags"],
        effective=told | request["flags"],
        environment=environment,
        smoke=_answers(),
        continuations={f"c{n}": LOGPROBS for n in range(4)},
    )
    files = stage_files(campaign.study.name, made)
    cell.folder.mkdir(parents=True, exist_ok=True)
    for stage, content in files.items():
        content["fingerprint"] = stage_fingerprint(stage, request, campaign._smoke, campaign._throughput)
        cell.file(stage).write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2))
    return CellFiles(phase, name, round_, **files)

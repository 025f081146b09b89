"""The three clients, each run in a process of its own on one core against the server on another."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from ground_truth.server import Schedule
from ground_truth.truth import Figures, TruthServer, true_figures

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SGLANG_PYTHON = ROOT / ".venv-bench" / "bin" / "python"

OURS, PYTHON, RUST = "pivotbench", "SGLang, Python", "SGLang, Rust"
CLIENTS = (OURS, PYTHON, RUST)
BACKENDS = {"openai-chat": "sglang-oai-chat", "sglang-generate": "sglang"}

SAMPLE_SECONDS = 0.02
TIMEOUT_SECONDS = 300


@dataclass(frozen=True)
class Load:
    """What a client is to send, and how the server answers."""

    dialect: str
    streams: int
    requests: int
    tokens: int
    schedule: Schedule


@dataclass(frozen=True)
class Outcome:
    """What a client reported, what was true, and how long it was at it, from first request to last byte.

    ``true_seconds`` is the time from the first request's arrival to the last send.
    """

    completed: int
    reported: Figures
    truth: Figures
    seconds: float
    true_seconds: float
    cpu_seconds: float

    @property
    def busy(self) -> float:
        """The share of a core that the client used."""
        return self.cpu_seconds / self.seconds


def run(client: str, load: Load) -> Outcome:
    """Run one client under one load. Raises RuntimeError with its last words if it fails."""
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as scratch, TruthServer(load.schedule, {cores[0]}) as server:
        file = Path(scratch) / "reported.json"
        command, environment = _command(client, load, server.url, file, Path(scratch))
        log = Path(scratch) / "log"
        with log.open("wb") as output:
            process = psutil.Popen(
                ["taskset", "-c", str(cores[-1]), *command],
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=scratch,
                env=environment,
            )
            watch = _Watch(process)
            try:
                process.wait(TIMEOUT_SECONDS)
            finally:
                watch.stop()
                if process.is_running():
                    process.kill()
        if process.returncode or not file.exists():
            raise RuntimeError(f"{client} failed: {log.read_text()[-2000:]}")
        reported = json.loads(file.read_text().splitlines()[-1])
        # SGLang's clients send a request first to warm up, which no figure of theirs includes.
        record = [answer for answer in server.record() if answer["sent"]][-load.requests :]
    begin = min(answer["arrived"] for answer in record)
    cpu = watch.cpu_seconds(begin, begin + reported["duration"])
    return Outcome(
        reported["completed"],
        _figures(reported),
        true_figures(record),
        reported["duration"],
        max(answer["sent"][-1] for answer in record) - begin,
        cpu,
    )


def _figures(reported: dict[str, Any]) -> Figures:
    nan = float("nan")
    return Figures(
        reported["mean_ttft_ms"],
        nan,
        reported["mean_itl_ms"],
        nan,
        reported["mean_tpot_ms"],
        nan,
        reported["output_throughput"],
    )


def _command(
    client: str, load: Load, url: str, file: Path, scratch: Path
) -> tuple[list[str], dict[str, str]]:
    numbers = [str(number) for number in (load.streams, load.requests, load.tokens)]
    if client == OURS:
        path = os.pathsep.join(str(ROOT / folder) for folder in ("scripts", "tests"))
        command = [sys.executable, str(HERE / "our_client.py"), url, load.dialect, *numbers, str(file)]
        return command, os.environ | {"PYTHONPATH": path}
    _write_tokenizer(scratch / "tokenizer")
    kind, own = ("python", []) if client == PYTHON else ("rust", ["--worker-threads", "1"])
    options = {
        "--backend": BACKENDS[load.dialect],
        "--base-url": url,
        "--model": "tokenizer",
        "--tokenizer": "tokenizer",
        "--dataset-name": "random-ids",
        "--random-input-len": "16",
        "--random-output-len": numbers[2],
        "--random-range-ratio": "1",
        "--num-prompts": numbers[1],
        "--max-concurrency": numbers[0],
        "--output-file": str(file),
    }
    flags = [text for option in options.items() for text in option]
    command = [str(SGLANG_PYTHON), str(HERE / "sglang_client.py"), kind, *flags, "--disable-tqdm", *own]
    return command, os.environ | {"HF_HUB_OFFLINE": "1"}


def _write_tokenizer(folder: Path) -> None:
    """Write a tokenizer that knows a few words: SGLang's clients make their prompts with one."""
    folder.mkdir()
    words = {"<unk>": 0} | {f"w{number}": number for number in range(1, 256)}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": words, "unk_token": "<unk>"},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


class _Watch:
    """Notes a process's processor time again and again."""

    def __init__(self, process: psutil.Popen) -> None:
        self._process = process
        self._samples: list[tuple[float, float]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.wait(SAMPLE_SECONDS):
            try:
                times = self._process.cpu_times()
            except psutil.Error:
                return
            self._samples.append((time.monotonic(), times.user + times.system))

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def cpu_seconds(self, begin: float, end: float) -> float:
        """Return the processor time between two times of CLOCK_MONOTONIC."""
        before = max((cpu for at, cpu in self._samples if at <= begin), default=0.0)
        return max((cpu for at, cpu in self._samples if at <= end), default=before) - before

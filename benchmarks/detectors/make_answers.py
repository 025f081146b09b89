"""Ask the embedded model every prompt of prompts.txt and keep its answers, one file for each way of asking.

    make engine
    PYTHONPATH=scripts .venv/bin/python benchmarks/detectors/make_answers.py --out FOLDER

Three ways of asking the model as it is: ``sampled`` (temperatures 0.6 to 1.2, repetition penalty 1.15 over
256 tokens, so that a model of this size does not loop), ``greedy`` (temperature 0, nothing added: it often
loops by itself), ``driven`` (greedy and past its natural end by ignore_eos, as the throughput stage asks).
``broken`` is the same greedy question to copies of the model whose weights were overwritten in places.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import requests

from pivotbench.engines import engine_python
from pivotbench.engines.llamacpp import LLAMACPP
from pivotbench.provision import model_path
from pivotbench.study import load_study

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NAME = "corpus"
SLOTS = 8
READY_SECONDS = 60.0
SAMPLED = {"repeat_penalty": 1.15, "repeat_last_n": 256, "top_p": 0.95, "min_p": 0.0, "top_k": 0}
TEMPERATURES = (0.6, 0.8, 1.0, 1.2)
MAX_TOKENS = {"sampled": 112, "greedy": 160, "driven": 192, "broken": 96}

# What is written over the weights: bytes, the first place as a share of the file, and how much of it.
DAMAGE: dict[str, tuple[str, float, float]] = {
    "zeros-early": ("zeros", 0.35, 0.10),
    "zeros-middle": ("zeros", 0.60, 0.04),
    "zeros-late": ("zeros", 0.80, 0.15),
    "ones": ("ones", 0.60, 0.02),
    "noise": ("noise", 0.50, 0.05),
    "shifted-early": ("shifted", 0.35, 0.10),
    "shifted-middle": ("shifted", 0.60, 0.10),
    "shifted-late": ("shifted", 0.80, 0.15),
}
EVERY = {"sampled": 1, "greedy": 2, "driven": 2, "broken": 7}  # of the prompts
BLOCK_BYTES = 20  # of Q4_1: two numbers of 16 bits and 32 weights of 4 bits
SHIFT_BLOCKS = 3


def prompts() -> list[tuple[str, str]]:
    """Return (kind, prompt) of every line of prompts.txt."""
    lines = (HERE / "prompts.txt").read_text().splitlines()
    split = (line.split(" | ", 1) for line in lines if line and not line.startswith("#"))
    return [(kind, prompt) for kind, prompt in split]


def damaged(model: Path, name: str, folder: Path) -> Path:
    """Return a copy of the model with a stretch of its weights overwritten, the same at each call."""
    kind, place, share = DAMAGE[name]
    data = bytearray(model.read_bytes())
    begin, length = int(len(data) * place), int(len(data) * share)
    end = min(begin + length, len(data))
    length, shift = end - begin, BLOCK_BYTES * SHIFT_BLOCKS
    data[begin:end] = {
        "zeros": lambda: bytes(length),
        "ones": lambda: b"\xff" * length,
        "noise": lambda: random.Random(name).randbytes(length),
        "shifted": lambda: bytes(data[begin - shift : end - shift]),
    }[kind]()
    copy = folder / f"{name}.gguf"
    copy.write_bytes(data)
    return copy


@contextlib.contextmanager
def serving(python: Path, model: Path) -> Iterator[str]:
    """Yield the address of a server of the model; it ends with the block."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    flags = {"threads": 1, "parallel": SLOTS, "ctx-size": 512 * SLOTS}
    command = LLAMACPP.command(str(python), str(model), flags, port=port, served_name=NAME)
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command.argv, stderr=log, env={**os.environ, **command.env})
        try:
            url = f"http://127.0.0.1:{port}"
            deadline = time.monotonic() + READY_SECONDS
            while LLAMACPP.probe(url, NAME, timeout_seconds=30).state != "ready":
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"the server of {model.name} did not start")
                time.sleep(0.1)
            yield url
        finally:
            process.kill()
            process.wait()


def ask(url: str, prompt: str, **settings: Any) -> dict[str, Any]:
    """Return the answer to one prompt: text, token ids, their logprobs and why it ended."""
    template = requests.post(
        f"{url}/apply-template", json={"messages": [{"role": "user", "content": prompt}]}, timeout=60
    )
    answer = requests.post(
        f"{url}/completion",
        json={"prompt": template.json()["prompt"], "return_tokens": True, "n_probs": 1, **settings},
        timeout=600,
    ).json()
    return {
        "text": answer["content"],
        "token_ids": answer["tokens"],
        "logprobs": [
            None if p["logprob"] is None else round(p["logprob"], 2)
            for p in answer.get("completion_probabilities", [])
        ],
        "stop": answer["stop_type"],
    }


def jobs(way: str) -> Iterator[dict[str, Any]]:
    """Yield what is asked in one way: kind, prompt and the settings of the request."""
    for number, (kind, prompt) in enumerate(prompts()):
        temperatures = TEMPERATURES if way == "sampled" else (0.0,)
        for temperature in temperatures:
            settings: dict[str, Any] = {"temperature": temperature, "n_predict": MAX_TOKENS[way]}
            if way == "sampled":
                settings |= SAMPLED | {"seed": 1000 * number + int(temperature * 10)}
            yield {"kind": kind, "prompt": prompt, "settings": settings | {"ignore_eos": way == "driven"}}


def rows(way: str, url: str, source: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Yield a row of the file for each job, in the order of the jobs."""
    with ThreadPoolExecutor(SLOTS) as pool:
        asked = list(jobs(way))
        asked = asked[:: EVERY[way]]
        answers = pool.map(lambda job: ask(url, job["prompt"], **job["settings"]), asked)
        for job, answer in zip(asked, answers, strict=True):
            shown = {k: job["settings"].get(k) for k in ("temperature", "seed", "repeat_penalty")}
            yield {"way": way, "kind": job["kind"], "prompt": job["prompt"], **shown, **source, **answer}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--ways", nargs="+", default=["sampled", "greedy", "driven", "broken"])
    parser.add_argument("--out", type=Path, required=True, help="folder of the files")
    arguments = parser.parse_args()
    python = engine_python("llamacpp", None, ROOT)
    model = Path(model_path(load_study(ROOT / "config" / "config.yaml").model))
    version = LLAMACPP.installed_version(python)
    source = {"engine": f"xllamacpp {version}", "model": model.name}
    for way in arguments.ways:
        with (arguments.out / f"{way}.jsonl").open("w") as out, tempfile.TemporaryDirectory() as folder:
            variants = (
                [(source | {"damage": d}, damaged(model, d, Path(folder))) for d in DAMAGE]
                if way == "broken"
                else [(source, model)]
            )
            for described, file in variants:
                with serving(python, file) as url:
                    for row in rows(way, url, described):
                        print(f"{way} {row['kind']}: {row['text'][:60]!r}")
                        out.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()

"""Results trees without a server: stage files as the real stages write them, from stated speeds.

Run as ``python tests/factory.py OUT_DIR`` it writes a demo campaign with its races and decision.
"""

from __future__ import annotations

import random
import re
import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

from pivotbench.evidence import CellFiles
from pivotbench.files import fingerprint, sha256_of_file, write_json
from pivotbench.results import SCHEMA_VERSION, STAGES, Reason, Stage, Status

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
STAGE_SECONDS = {"launch": 2.0, "smoke": 1.5, "throughput": 18.0, "teardown": 0.5}
ENVIRONMENT: dict[str, Any] = {
    "engine": "llamacpp",
    "engine_version": "2026.10.11549",
    "packages": {"xllamacpp": "2026.10.11549"},
    "gpus": [],
    "driver": None,
    "cpu_model": "Example CPU",
    "cores": 2,
    "host": "bench-1",
    "model": "SmolLM2-135M-Instruct",
    "model_revision": "b179c952",
}
Load = tuple[str, int]


@dataclass(frozen=True)
class Drafts:
    """What speculation did on one workload: drafted and accepted tokens for each 1,000 output tokens.

    ``counted``: the server counted its verify steps. ``proposed=None``: nothing was reported.
    """

    proposed: int | None
    accepted: int | None
    counted: bool = False


@dataclass(frozen=True)
class Cell:
    """One cell to be written; ``tok_s`` maps (workload, concurrency) to the mean over windows.

    ``smoke``: prompts made by smoke_prompt; ``continuations``: their logprobs by id; ``suspect``: how many of
    20 prompts under each load each detector found suspect; ``collapsed``: all smoke answers begin alike;
    ``asked``: the study's throughput section as the stage was given it; ``watts``: what a GPU draws
    meanwhile, None for a machine without one; ``late_hours``: how long after its round's turn it ran, an hour
    a round.
    """

    phase: str
    configuration: str
    round: int
    tok_s: Mapping[Load, float] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    drafts: Mapping[str, Drafts] = field(default_factory=dict)
    flags: Mapping[str, Any] = field(default_factory=dict)
    effective: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=lambda: ENVIRONMENT)
    failed: Stage | None = None
    reason: Reason | None = None
    client_bound: bool = False
    simulated: bool = False
    speed_only: bool = False
    stop: str = "length"
    unanswered: Sequence[str] = ()
    throttled: bool | None = False
    watts: float | None = None
    per_gpu_mib: Mapping[str, int] = field(default_factory=dict)
    smoke: Sequence[Mapping[str, Any]] = ()
    continuations: Mapping[str, Sequence[float]] = field(default_factory=dict)
    suspect: Mapping[str, int] = field(default_factory=dict)
    collapsed: bool = False
    asked: Mapping[str, Any] | None = None
    late_hours: float = 0.0


def write_cells(root: Path, study: str, cells: Sequence[Cell], *, requests: bool = False) -> list[Path]:
    """Write every cell under ``root/<study>`` and return their folders, in order."""
    return [write_cell(root, study, cell, order=i, requests=requests) for i, cell in enumerate(cells)]


def write_cell(root: Path, study: str, cell: Cell, *, order: int = 0, requests: bool = False) -> Path:
    """Write the stage files of one cell; after a failed stage the following ones are skipped.

    ``requests``: also write requests.parquet (a few rows a run, in line with the stated speeds).
    """
    folder = root / study / cell.phase / cell.configuration / f"r{cell.round}"
    files = stage_files(study, cell, order=order)
    if requests and files["throughput"]["status"] == "ok":
        files["throughput"]["requests_file"] = _write_requests(folder / "requests.parquet", cell)
    for stage, content in files.items():
        write_json(folder / f"{stage}.json", content)
    return folder


def cell_files(cell: Cell, study: str = "sim", seconds: Mapping[str, float] = STAGE_SECONDS) -> CellFiles:
    """Return a cell as read from its files, without writing them; ``seconds``: how long each stage takes."""
    files = stage_files(study, cell, seconds=seconds)
    return CellFiles(cell.phase, cell.configuration, cell.round, **files)


def stage_files(
    study: str, cell: Cell, *, order: int = 0, seconds: Mapping[str, float] = STAGE_SECONDS
) -> dict[str, dict[str, Any]]:
    """Return the content of the four stage files; ``order`` moves their times."""
    key = fingerprint([study, cell.phase, cell.configuration, cell.round])
    launch_id = f"{cell.configuration.replace('+', '-')}-r{cell.round}-{key[:6]}"
    begin = START + timedelta(hours=cell.round - 1 + cell.late_hours, seconds=25 * order)
    files: dict[str, dict[str, Any]] = {}
    for stage in STAGES:
        broken = stage == cell.failed
        after = cell.failed is not None and STAGES.index(stage) > STAGES.index(cell.failed)
        # A server that loaded is stopped however its stages ended; one that never was has nothing to stop.
        stops = stage == "teardown" and cell.failed in ("smoke", "throughput")
        status: Status = "failed" if broken else "skipped" if after and not stops else "ok"
        reason = cell.reason if broken else None
        if status == "skipped" and cell.reason is not None:
            reason = replace(cell.reason, message=f"{cell.failed} failed: {cell.reason.message}")
        end = begin + timedelta(seconds=seconds[stage] if status != "skipped" else 0)
        server = {
            "launch_id": launch_id,
            "effective": {**cell.flags, **cell.effective},
            "relaunched": False,
            "log": "logs/launch.log",
        }
        files[stage] = {
            "schema": f"pivotbench/{stage}/{SCHEMA_VERSION}",
            "status": status,
            "reason": asdict(reason) if reason else None,
            "fingerprint": key,
            "cell": {
                "study": study,
                "phase": cell.phase,
                "configuration": cell.configuration,
                "round": cell.round,
            },
            "started": begin.isoformat(timespec="milliseconds"),
            "ended": end.isoformat(timespec="milliseconds"),
            "server": server if status == "ok" or (broken and stage != "launch") else None,
            **(_BODIES[stage](cell, random.Random(key + stage)) if status != "skipped" else {}),
        }
        begin = end
    return files


def _launch(cell: Cell, rng: random.Random) -> dict[str, Any]:
    argv = [f"{'--' + name} {value}" for name, value in sorted(cell.flags.items())]
    return {
        "ready_seconds": round(0.6 + 0.1 * rng.random(), 3),
        "phases": [{"name": "load weights", "seconds": 0.4}, {"name": "warm up", "seconds": 0.2}],
        "command": {
            "study": ["python", "-m", "server", "--model", "model.gguf", *" ".join(argv).split()],
            "added": ["--port", "30000"],
        },
        "requested": dict(cell.flags),
        "overrides": [],
        "memory": {"per_gpu_mib": dict(cell.per_gpu_mib), "resident_mib": 240},
        "environment": dict(cell.environment),
    }


def _smoke(cell: Cell, _: random.Random) -> dict[str, Any]:
    bad = cell.failed == "smoke"
    text = "!!!!!!!!!!!!!!!!" if bad else "The answer to this classic math problem is 4."
    prompts = cell.smoke or [smoke_prompt("What is 2+2?", text, contains="4", verdict="bad" if bad else "ok")]
    return {
        "prompts": list(prompts),
        "across": [
            {
                "name": "first_token_collapse",
                "figure": float(cell.collapsed),
                "threshold": 0.9,
                "verdict": "suspect" if cell.collapsed else "ok",
            }
        ],
        "continuations": [
            {
                "id": name,
                "prompt": f"{name}: ",
                "continuation": "on and on",
                "token_logprobs": list(logprobs),
                "at_most": [],
                "why": None,
            }
            for name, logprobs in cell.continuations.items()
        ],
        "repeatability": None,
        "logprobs_refused": None,
    }


def smoke_prompt(
    ask: str,
    *texts: str,
    contains: str | None = None,
    verdict: str = "ok",
    gap_nats: float | None = None,
    logprob: float = -0.2,
) -> dict[str, Any]:
    """Return one prompt of smoke.json with an answer for each text; a word is a token.

    ``gap_nats``: how much likelier each token of the first answer was than "or", its only alternative.
    """
    answers = []
    for index, text in enumerate(texts):
        words = [w for w in re.split(r"(?= )", text) if w]
        told = index == 0 and gap_nats is not None
        top = [[[token_id(w), w, -0.2], [token_id(" or"), " or", -0.2 - (gap_nats or 0)]] for w in words]
        answers.append(
            {
                "text": text,
                "token_ids": [token_id(w) for w in words] if told else None,
                "logprobs": [logprob] * len(words) if told else None,
                "alternatives": top if told else None,
                "finish_reason": "stop",
                "output_tokens": 12,
                "detectors": [
                    {
                        "name": "repetition",
                        "figure": 0.1 if verdict == "ok" else 1.0,
                        "threshold": 0.5,
                        "verdict": verdict,
                    }
                ],
                "met": None if contains is None else contains in text,
            }
        )
    first = answers[0]
    expectation = {"kind": "contains", "value": contains, "met": first["met"]}
    return {
        "ask": ask,
        **{k: first[k] for k in ("text", "token_ids", "finish_reason", "output_tokens", "detectors")},
        "expectation": expectation if contains is not None else None,
        "answers": answers,
    }


def token_id(word: str) -> int:
    """Return a word's token id, the same in every answer."""
    return zlib.crc32(word.encode()) % 50_000


def _throughput(cell: Cell, rng: random.Random) -> dict[str, Any]:
    return {
        "runs": [_run(cell, load, tok_s, rng) for load, tok_s in sorted(cell.tok_s.items())],
        "speed_only": cell.speed_only,
        **({"asked": dict(cell.asked)} if cell.asked is not None else {}),
    }


def _run(cell: Cell, load: Load, tok_s: float, rng: random.Random, windows: int = 3) -> dict[str, Any]:
    workload, concurrency = load
    noise = [rng.gauss(0, 0.01) for _ in range(windows)]
    centre = sum(noise) / windows
    values = [tok_s * (1 + n - centre) for n in noise]
    tokens = round(sum(values) * 4)
    tpot = concurrency / tok_s
    drafts = cell.drafts.get(workload)
    proposed = accepted = steps = None
    if drafts is not None and drafts.proposed is not None and drafts.accepted is not None:
        proposed, accepted = (round(n * tokens / 1000) for n in (drafts.proposed, drafts.accepted))
        steps = tokens - accepted
    return {
        "workload": workload,
        "kind": cell.kinds.get(workload, "text"),
        "stop": cell.stop,
        "unanswered": list(cell.unanswered),
        "concurrency": concurrency,
        "warmup": {"requests": 2 * concurrency, "seconds": 2.0},
        "windows": [
            {
                "window": i + 1,
                "begin_seconds": 4.0 * i,
                "end_seconds": 4.0 * (i + 1),
                "output_tokens": round(value * 4),
                "output_tok_s": value,
                "requests_completed": max(1, round(value * 4 / 96)),
            }
            for i, value in enumerate(values)
        ],
        "requests": {"completed": max(1, tokens // 96), "failed": 0, "short": 0, "timeout": 0},
        "output_tokens": {"server": tokens, "stream": tokens},
        "ttft_seconds": _percentiles(0.05 * concurrency),
        "itl_seconds": _percentiles(tpot),
        "tpot_seconds": _percentiles(tpot),
        "e2e_seconds": _percentiles(0.05 * concurrency + 95 * tpot),
        "acceptance": {
            "length": None if steps is None else tokens / steps,
            "proposed": proposed,
            "accepted": accepted,
            "verify_steps": steps,
            "per_position": None,
            "counted": bool(drafts and drafts.counted),
            "simulated": cell.simulated,
        },
        "answers": {
            "inspected": 40,
            "suspect": {name: 2 * prompts for name, prompts in cell.suspect.items()},
            "bad": {"repetition": 3} if cell.failed == "throughput" else {},
            "first": None,
            "prompts": {
                "inspected": 20,
                "suspect": dict(cell.suspect),
                "first": {"detector": "loop", "prompt_id": "p1", "text": "on and on and on"},
            },
        },
        "errors": [],
        "client": {
            "bound": cell.client_bound,
            "loop_lag_p99_seconds": 0.05 if cell.client_bound else 0.001,
            "token_gap_seconds": tpot,
        },
        "warnings": [],
        "telemetry": {
            "throttled": cell.throttled,
            "aggregate": None if cell.watts is None else _gpu(cell.watts, rng),
            "host": {"cpu_percent": {"mean": 97.0, "min": 90.0, "max": 100.0}},
            "throttle_reasons": None if cell.watts is None else {},
            "energy_joules_per_output_token": None if cell.watts is None else cell.watts / tok_s,
        },
    }


def _gpu(watts: float, rng: random.Random) -> dict[str, dict[str, float]]:
    centres = {"power_w": watts, "sm_clock_mhz": 1980.0, "temperature_c": 30 + watts / 20 + rng.gauss(0, 1)}
    spread = {"power_w": 0.1, "sm_clock_mhz": 0.0, "temperature_c": 0.03}
    return {
        quantity: {
            "mean": centre,
            "min": centre * (1 - spread[quantity]),
            "max": centre * (1 + spread[quantity] / 2),
        }
        for quantity, centre in centres.items()
    }


def _percentiles(centre: float) -> dict[str, float]:
    return {"mean": centre, "p50": centre, "p90": centre * 1.05, "p99": centre * 1.1}


def _teardown(_: Cell, rng: random.Random) -> dict[str, Any]:
    return {
        "verdict": "released",
        "signals": [{"signal": "SIGTERM", "seconds": round(0.1 + 0.1 * rng.random(), 3)}],
        "seconds": 0.2,
        "processes_left": [],
        "port_closed": True,
        "memory": {"before_mib": 240, "after_mib": 0},
        "launch_id": None,
    }


_BODIES = {"launch": _launch, "smoke": _smoke, "throughput": _throughput, "teardown": _teardown}


def _write_requests(path: Path, cell: Cell, tokens: int = 96) -> dict[str, Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = []
    for (workload, concurrency), tok_s in sorted(cell.tok_s.items()):
        tpot = concurrency / tok_s
        for index in range(4 * concurrency):
            sent = (index // concurrency) * (0.05 + tokens * tpot)
            drafts = cell.drafts.get(workload)
            accepted = None if drafts is None or drafts.accepted is None else drafts.accepted * tokens // 1000
            proposed = None if drafts is None or drafts.proposed is None else drafts.proposed * tokens // 1000
            rows.append(
                {
                    "workload": workload,
                    "kind": cell.kinds.get(workload, "text"),
                    "concurrency": concurrency,
                    "index": index,
                    "measured": index >= concurrency,
                    "prompt_id": f"p{index % 4}",
                    "status": "ok",
                    "finish_reason": "length",
                    "error": None,
                    "prompt_tokens": 40,
                    "cached_tokens": 0,
                    "output_tokens": tokens,
                    "stream_tokens": tokens,
                    "sent_seconds": sent,
                    "first_token_seconds": sent + 0.05,
                    "end_seconds": sent + 0.05 + (tokens - 1) * tpot,
                    "ttft_seconds": 0.05,
                    "tpot_seconds": tpot,
                    "e2e_seconds": 0.05 + (tokens - 1) * tpot,
                    "chunk_seconds": [sent + 0.05 + i * tpot for i in range(tokens)],
                    "chunk_tokens": [1] * tokens,
                    "draft_proposed": proposed,
                    "draft_accepted": accepted,
                    "verify_steps": None,
                    "text": "once upon a time",
                }
            )
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)
    return {"path": path.name, "sha256": sha256_of_file(path), "rows": len(rows)}


def stored_race(phase: str, number: int, judged: Sequence[str], **changes: Any) -> dict[str, Any]:
    """Return what readers need of a race file: one that judged these in its round, and ended its phase."""
    told = {"phase": phase, "round": number, "next": [], "ended": True, "base": None, "noise": None}
    evidence = [{"configuration": name, "rounds": [number]} for name in judged]
    return told | {"evidence": evidence, "eliminated": [], "log": []} | changes


def noisy(centre: float, sd: float, *seed: object) -> float:
    """Return ``centre`` with log-normal noise of relative ``sd``, the same for the same seed."""
    rng = random.Random(sha256(repr(seed).encode()).hexdigest())
    return float(centre * 2.718281828459045 ** rng.gauss(0, sd))


UNSUPPORTED = Reason(
    code="flag_conflict",
    kind="deterministic",
    message="a quantized V cache needs flash attention",
    evidence=("llama_init_from_model: quantized V cache requires flash_attn to be enabled",),
    signature="quantized-v-cache",
    links=("https://github.com/ggml-org/llama.cpp/pull/5021",),
)
GARBAGE = Reason.of("garbage", "answers are one token repeated", ("What is 2+2? -> !!!!!!!!!!!!!!!!",))


if __name__ == "__main__":
    from campaigns import write_demo

    print(write_demo(Path(sys.argv[1])))

"""Whole campaigns without a server: the demo study and the founding campaign, round by round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from factory import ENVIRONMENT, GARBAGE, UNSUPPORTED, Cell, Drafts, Load, cell_files, noisy, write_cells
from pivotbench.decision_rules import DecisionRules
from pivotbench.evidence import CellFiles, read_cell
from pivotbench.files import write_json, write_text
from pivotbench.results import Reason

DEMO_LOADS: tuple[Load, ...] = (("repetitive", 1), ("repetitive", 4), ("free", 1), ("free", 4))
DEMO_FLAGS: dict[str, dict[str, Any]] = {
    "flash-on": {"flash-attn": "on"},
    "flash-off": {"flash-attn": "off"},
    "kv-q8": {"flash-attn": "on", "cache-type-k": "q8_0"},
    "no-repack": {"flash-attn": "on", "repack": "off"},
    "kv-q4": {"flash-attn": "on", "cache-type-k": "q4_0"},
    "kv-q8-no-flash": {"flash-attn": "off", "cache-type-k": "q8_0"},
}
DEMO_SPEED = {"flash-on": 92.0, "flash-off": 75.0, "kv-q8": 88.0, "no-repack": 55.0}


CHAT_RULES = DecisionRules(
    study="sim",
    engine="llamacpp",
    model="m",
    metric_weights={"chat": 1.0},
    metric_concurrency=1,
    margin=0.02,
    confidence=0.95,
    rounds_min=2,
    rounds_max=5,
)


def demo_rules() -> DecisionRules:
    """Return the demo study's rules."""
    return DecisionRules(
        study="demo",
        engine="llamacpp",
        model="SmolLM2-135M-Instruct",
        metric_weights={"repetitive": 1.0, "free": 1.0},
        metric_concurrency=1,
        margin=0.10,
        confidence=0.95,
        rounds_min=2,
        rounds_max=3,
    )


def demo_cells(phase: str, names: Sequence[str], round_: int) -> list[Cell]:
    """Return the demo campaign's cells of one round for these configurations."""
    return [_demo_cell(phase, name, round_) for name in names]


def _demo_cell(phase: str, name: str, round_: int) -> Cell:
    base, _, spec = name.partition("+")
    cell = Cell(phase, name, round_, flags=DEMO_FLAGS[base])
    if name == "kv-q8-no-flash":
        return replace(cell, failed="launch", reason=UNSUPPORTED)
    if name == "kv-q4":
        return replace(cell, failed="smoke", reason=GARBAGE)
    gain = {
        "ngram-simple": {"repetitive": 1.55, "free": 0.94},
        "ngram-map-k": {"repetitive": 1.30, "free": 0.97},
        "ngram-mod": {"repetitive": 0.98, "free": 0.80},
    }.get(spec, {})
    drafts = {
        "ngram-simple": {"repetitive": Drafts(840, 710), "free": Drafts(310, 20)},
        "ngram-map-k": {"repetitive": Drafts(700, 520), "free": Drafts(160, 15)},
        "ngram-mod": {"repetitive": Drafts(600, 60), "free": Drafts(0, 0)},
    }.get(spec, {})
    speed = DEMO_SPEED[base]
    tok_s = {
        (w, c): noisy(speed * gain.get(w, 1.0) * (1.0 if c == 1 else 1.6), 0.025, phase, name, round_, w, c)
        for w, c in DEMO_LOADS
    }
    if spec and spec != "none":
        cell = replace(cell, flags={**cell.flags, "spec-type": spec}, drafts=drafts)
    return replace(cell, tok_s=tok_s)


def founding_environment() -> dict[str, Any]:
    """Return the environment of the founding campaign's host."""
    gpus = [{"uuid": f"GPU-{i}", "name": "RTX PRO 6000 Blackwell"} for i in range(8)]
    return {
        **ENVIRONMENT,
        "engine": "sglang",
        "engine_version": "0.5.16",
        "packages": {"sglang": "0.5.16"},
        "gpus": gpus,
        "model": "Qwen3.5-397B-A17B-NVFP4",
        "model_revision": None,
    }


def founding_cells() -> list[Cell]:
    """Return the founding campaign's backends as it was run: one launch of each configuration."""
    arch = Reason(
        code="unsupported_arch",
        kind="deterministic",
        message="kernels are built for SM100, this GPU is SM120",
        evidence=("RuntimeError: Unsupported architecture",),
    )
    shared: dict[str, Any] = {"environment": founding_environment(), "kinds": {"chat": "synthetic"}}

    def cell(name: str, moe: str, dense: str, **more: Any) -> Cell:
        flags = {"moe-runner-backend": moe, "fp4-gemm-backend": dense}
        return Cell("backends", name, 1, flags=flags, **shared, **more)

    return [
        cell("moe-trtllm", "flashinfer_trtllm", "auto", failed="launch", reason=arch),
        cell("dense-trtllm", "auto", "flashinfer_trtllm", failed="launch", reason=arch),
        cell("cutedsl", "flashinfer_cutedsl", "flashinfer_cutedsl", failed="smoke", reason=GARBAGE),
        cell("cutlass-cudnn", "flashinfer_cutlass", "flashinfer_cudnn", tok_s={("chat", 1): 71.6}),
        cell("cutlass-cutlass", "flashinfer_cutlass", "flashinfer_cutlass", tok_s={("chat", 1): 71.9}),
    ]


def founding_speculation(base: str) -> list[Cell]:
    """Return the pivot: NEXTN on the winner, on random tokens, without gain."""
    shared: dict[str, Any] = {"environment": founding_environment(), "kinds": {"chat": "synthetic"}}
    return [
        Cell("speculative", f"{base}+none", 1, tok_s={("chat", 1): 71.8}, **shared),
        Cell(
            "speculative",
            f"{base}+nextn",
            1,
            tok_s={("chat", 1): 71.2},
            flags={"speculative-algorithm": "NEXTN"},
            drafts={"chat": Drafts(1600, 420, counted=True)},
            **shared,
        ),
    ]


FOUNDING_RULES = replace(
    CHAT_RULES,
    study="founding",
    engine="sglang",
    model="Qwen3.5-397B-A17B-NVFP4",
    gpus=8,
    rounds_min=1,
    rounds_max=1,
)


def founding_decision() -> dict[str, Any]:
    """Return what the real rules say of the founding campaign as it was run, one launch of each."""
    from pivotbench.decision.decide import decide

    races, cells = run_phase(FOUNDING_RULES, "backends", [], lambda *_: founding_cells())
    base = races[-1]["base"]
    races, more = run_phase(FOUNDING_RULES, "speculative", [], lambda *_: founding_speculation(base), races)
    return decide(FOUNDING_RULES, races, cells + more)


def synthetic_replicate(rounds: int = 5, sd: float = 0.003) -> dict[str, Any]:
    """Return the decision on a SYNTHETIC replicate of the founding campaign: nobody measured these rounds.

    71.6 and 71.9 tok/s are taken for the truth, and launches spread by ``sd`` around them.
    """
    from pivotbench.decision.decide import decide

    def make(_: str, names: Sequence[str], round_: int) -> list[Cell]:
        return [
            replace(
                cell,
                round=round_,
                tok_s={k: noisy(v, sd, cell.configuration, round_) for k, v in cell.tok_s.items()},
            )
            for cell in founding_cells()
            if round_ == 1 or cell.configuration in names
        ]

    rules = replace(FOUNDING_RULES, study="synthetic-replicate", rounds_min=2, rounds_max=rounds)
    races, cells = run_phase(rules, "backends", [], make)
    return decide(rules, races, cells)


Make = Callable[[str, Sequence[str], int], Sequence[Cell]]


def run_phase(
    rules: DecisionRules,
    phase: str,
    names: Sequence[str],
    make: Make,
    races: Sequence[dict[str, Any]] = (),
    store: Callable[[Sequence[Cell]], list[CellFiles]] | None = None,
) -> tuple[list[dict[str, Any]], list[CellFiles]]:
    """Run a phase's rounds until its race ends; ``make`` gives the cells of (phase, names, round).

    Returns the races, earlier ones first, and the phase's cells. ``store`` turns cells into files on disk;
    without it they stay in memory.
    """
    from pivotbench.decision.racing import judge_round

    races, cells = list(races), []
    for round_ in range(1, rules.rounds_max + 1):
        made = make(phase, names, round_)
        cells += store(made) if store else [cell_files(c, rules.study) for c in made]
        race = judge_round(rules, phase, round_, cells, races)
        races.append(race)
        names = race["next"]
        if race["ended"]:
            break
    return races, cells


def write_demo(root: Path) -> Path:
    """Write a whole demo campaign under ``root``; returns the study's results folder."""
    rules = demo_rules()
    drafters = ("ngram-simple", "ngram-map-k", "ngram-mod")
    return write_campaign(root / rules.study, rules, demo_cells, list(DEMO_FLAGS), drafters, requests=True)


def write_campaign(
    folder: Path,
    rules: DecisionRules,
    make: Make,
    backends: Sequence[str],
    speculations: Sequence[str] = (),
    *,
    requests: bool = False,
) -> Path:
    """Write a campaign of both phases, races and decision and all, as ``folder``; returns it."""
    from pivotbench.decision.decide import decide
    from pivotbench.measurements import collect, write
    from pivotbench.summary.text import summary_markdown

    def store(made: Sequence[Cell]) -> list[CellFiles]:
        return [read_cell(path) for path in write_cells(folder.parent, folder.name, made, requests=requests)]

    races, cells = run_phase(rules, "backends", backends, make, store=store)
    base = races[-1]["base"]
    if speculations and base:
        names = [f"{base}+{spec}" for spec in ("none", *speculations)]
        races, more = run_phase(rules, "speculative", names, make, races, store)
        cells += more
    for race in races:
        write_json(folder / "race" / f"{race['phase']}.r{race['round']}.json", race)
    write(collect(cells), folder / "measurements.parquet", folder / "measurements.csv")
    decision = decide(rules, races, cells)
    write_json(folder / "decision.json", decision)
    write_text(folder / "summary.md", summary_markdown(decision))
    return folder

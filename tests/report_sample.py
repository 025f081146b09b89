"""Decisions for charts and report, written down rather than computed: what is shown is under test here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd

from factory import ENVIRONMENT, GARBAGE, UNSUPPORTED, Cell, Drafts, noisy, write_cells
from pivotbench.charts.build import build_charts
from pivotbench.charts.spec import specifications
from pivotbench.diagnosis.reasons import remedy_of
from pivotbench.evidence import CellFiles, read_cell
from pivotbench.measurements import collect
from pivotbench.report import render
from pivotbench.results import DECISION_SCHEMA, Reason

STUDY = "sample"
SPEEDS = {"flash-on": 92.0, "kv-q8": 90.5, "flash-off": 75.0, "no-repack": 55.0}
GAINS = {"ngram-simple": {"repetitive": 1.55, "free": 0.94}, "ngram-mod": {"repetitive": 0.98, "free": 0.8}}
DRAFTS = {
    "ngram-simple": {"repetitive": Drafts(840, 710), "free": Drafts(310, 20)},
    "ngram-mod": {"repetitive": Drafts(600, 60), "free": Drafts(0, 0)},
}


@dataclass(frozen=True)
class Sample:
    """A results folder with what charts and report read of it."""

    folder: Path
    decision: dict[str, Any]
    measurements: pd.DataFrame
    cells: list[CellFiles]


def sample(
    root: Path,
    *,
    speeds: Mapping[str, float] = SPEEDS,
    rounds: int = 3,
    verdicts: Mapping[str, str] | None = None,
    speculation: bool = True,
    broken: bool = True,
    evidence_line: str | None = None,
    load_sd: float = 0.025,
) -> Sample:
    """Return a campaign; ``verdicts`` are those against the first, which always wins unless nothing ran."""
    names = list(speeds)
    cells = [
        Cell(
            "backends",
            name,
            round_,
            tok_s=loads(name, speeds[name], round_, load_sd),
            flags={"flash-attn": "on", "variant": name},
            watts=80 + speeds[name],
        )
        for round_ in range(1, rounds + 1)
        for name in names
    ]
    if broken:
        reason = UNSUPPORTED
        if evidence_line is not None:
            reason = type(reason)(reason.code, reason.kind, reason.message, (evidence_line,))
        cells.append(Cell("backends", "kv-q8-no-flash", 1, failed="launch", reason=reason))
        cells.append(Cell("backends", "kv-q4", 1, failed="smoke", reason=GARBAGE))
    drafting = list(GAINS) if speculation and names else []
    for round_ in range(1, rounds + 1):
        for name in ["none", *drafting] if drafting else []:
            gain = GAINS.get(name, {})
            tok_s = loads(f"{names[0]}+{name}", speeds[names[0]], round_, load_sd, gain)
            cells.append(
                Cell(
                    "speculative",
                    f"{names[0]}+{name}",
                    round_,
                    tok_s=tok_s,
                    drafts=DRAFTS.get(name, {}),
                    watts=190.0,
                )
            )
    read = [read_cell(folder) for folder in write_cells(root, STUDY, cells)]
    decision = decided(speeds, rounds, verdicts or {}, drafting, broken)
    return Sample(root / STUDY, decision, collect(read), read)


def page(
    decision: Mapping[str, Any],
    measurements: pd.DataFrame,
    cells: Sequence[CellFiles],
    altered: Sequence[str] = (),
) -> str:
    """Return the report with the charts of the same decision."""
    charts = specifications(build_charts(decision, measurements, cells))
    return render(decision, charts, cells, altered)


def loads(
    name: str, speed: float, round_: int, sd: float, gain: Mapping[str, float] | None = None
) -> dict[tuple[str, int], float]:
    """Return tok/s by workload and concurrency, noisy from round to round."""
    gain = gain or {}
    return {
        (w, c): noisy(speed * gain.get(w, 1.0) * (1 if c == 1 else 1.6), sd, name, round_, w, c)
        for w in ("repetitive", "free")
        for c in (1, 4)
    }


def decided(
    speeds: Mapping[str, float],
    rounds: int,
    verdicts: Mapping[str, str],
    drafting: Sequence[str],
    broken: bool,
) -> dict[str, Any]:
    """Return a decision with every key that decision.json has."""
    names = list(speeds)
    winner = names[0] if names else None
    comparisons = [comparison(name, speeds[name] / speeds[names[0]], verdicts, winner) for name in names[1:]]
    alike = [name for name in names if name == winner or verdicts.get(name) == "equivalent"]
    return {
        "schema": DECISION_SCHEMA,
        "study": STUDY,
        "engine": "llamacpp",
        "model": "SmolLM2-135M-Instruct",
        "metric": {
            "workloads": {"repetitive": 1.0, "free": 1.0},
            "concurrency": 1,
            "goodput": None,
            "margin": 0.1,
            "confidence": 0.95,
            "unit": "output tok/s",
        },
        "confidence": {
            "looks": 2,
            "comparisons": {"backends": 6},
            "noise": {"backends": {"sd": 0.024, "df": 8}},
            "statement": "All intervals hold together with a probability of 95 %.",
        },
        "environment": dict(ENVIRONMENT),
        "winner": winner,
        "launch_command": f"python -m server --model model.gguf --variant {winner}" if winner else None,
        "runner_up": None,
        "ranking": [
            {
                "phase": "backends",
                "configuration": n,
                "mean_tok_s": s,
                "ci": [s * 0.96, s * 1.04] if rounds > 1 else None,
                "rounds": rounds,
                "by_round": [
                    {"round": r, "tok_s": noisy(s, 0.02, "metric", n, r)} for r in range(1, rounds + 1)
                ],
                "at_least": False,
                "largest_load": None,
            }
            for n, s in speeds.items()
        ],
        "classes": [
            {"phase": "backends", "leader": group[0], "members": group, "undecided": []}
            for group in ([alike, *([n] for n in names if n not in alike)] if names else [])
        ],
        "comparisons": comparisons,
        "eliminated": [
            failed("kv-q4", "smoke", GARBAGE),
            failed("kv-q8-no-flash", "launch", UNSUPPORTED),
        ]
        if broken
        else [],
        "agreement": [
            answered("backends", list(speeds)),
            *([answered("speculative", [f"{winner}+{n}" for n in ("none", *drafting)])] if drafting else []),
        ]
        if speeds
        else [],
        "speculation": [
            verdict(winner, name, workload, c)
            for name in drafting
            for workload in GAINS[name]
            for c in (1, 4)
        ],
        "limit": {
            "configuration": "flash-on+ngram-simple",
            **dict.fromkeys(("gpu", "gpus", "bandwidth_gb_s", "source", "measured_tok_s", "roofline_tok_s")),
            "share": None,
            "by_workload": [],
            "reason": "it ran on the CPU, whose memory bandwidth is not recorded",
        },
        "regions": regions(speeds, drafting),
        "pareto": [
            operating_point(w, f"{names[0]}+ngram-simple" if drafting and w == "repetitive" else names[0], c)
            for w in ("free", "repetitive")
            for c in (1, 4)
            if names
        ],
        "open_loop": [
            at_a_rate(name, rate, sustained=max(0, rounds - behind) if rate > 1 else rounds, rounds=rounds)
            for rate in (0.5, 2.0)
            for behind, name in enumerate(speeds)
        ],
        "hypotheses": [
            {
                "statement": "The measured equivalence is stable",
                "verdict": "untested",
                "evidence": "no two are equivalent",
            }
        ],
        "next_levers": [
            {
                "lever": "longer drafts",
                "because": "drafts are accepted to the end",
                "snippet": "speculative:\n  longer: {draft-max: 16}",
                "refuted_by": "acceptance length stays below 3.5",
            }
        ],
        "threats": [{"code": "noise", "message": "Launches of one configuration differ by 2.4 %."}],
        "cost": {
            "gpu_seconds": 0.0,
            "server_seconds": 512.0,
            "launches": len(names) * rounds + 2 * broken,
            "full_sweep_gpu_seconds": 0.0,
            "full_sweep_server_seconds": 640.0,
        },
        "log": [
            "backends, round 1: all have a value",
            "backends, round 2: no-repack is slower; the rest go on",
        ],
    }


def regions(speeds: Mapping[str, float], drafting: Sequence[str]) -> dict[str, Any]:
    """Return the first as best at every load, with speculation on repetitive text, which is a crossing."""
    if not speeds:
        return {"confidence": 0.95, "statement": "Exploratory", "by_load": [], "best": [], "crossings": []}
    first, *others = speeds
    drafts = f"{first}+ngram-simple"
    by_load = [
        {
            "phase": "backends",
            "workload": w,
            "concurrency": c,
            "decides": w is None and c == 1,
            "best": first,
            "mean_tok_s": speeds[first],
            "standing": "leads" if others else "alone",
            "others": [
                {
                    "configuration": n,
                    "mean_tok_s": speeds[n],
                    "ratio": speeds[n] / speeds[first],
                    "ci": [0.9 * speeds[n] / speeds[first], 0.99],
                    "verdict": "slower",
                }
                for n in others
            ],
        }
        for w in ("free", "repetitive", None)
        for c in (1, 4)
    ]
    best = [
        {
            **{key: load[key] for key in ("workload", "concurrency", "decides", "mean_tok_s")},
            "configuration": drafts if drafting and load["workload"] == "repetitive" else first,
            "standing": load["standing"],
            "equivalent": [],
            "undecided": [],
        }
        for load in by_load
    ]
    crossing = {
        "phase": "speculative",
        "along": "workload",
        "a": f"{first}+none",
        "b": drafts,
        "a_ahead_at": {"workload": "free", "concurrency": 1},
        "b_ahead_at": {"workload": "repetitive", "concurrency": 1},
        "verdict": "crossing",
    }
    return {
        "confidence": 0.95,
        "statement": "Exploratory: all verdicts by load hold together with 95 % confidence",
        "by_load": by_load,
        "best": best,
        "crossings": [crossing] if drafting else [],
    }


def operating_point(workload: str, name: str, concurrency: int) -> dict[str, Any]:
    """Return a point of the Pareto set."""
    return {
        "workload": workload,
        "configuration": name,
        "concurrency": concurrency,
        "output_tok_s": 90.0 * concurrency**0.4,
        "output_tok_s_per_gpu": None,
        "tok_s_per_user": 90.0 / concurrency**0.6,
        "tpot_p50_seconds": concurrency**0.6 / 90.0,
        "ttft_p50_seconds": 0.05 * concurrency,
        "ttft_p99_seconds": 0.055 * concurrency,
    }


def at_a_rate(name: str, rate: float, *, sustained: int, rounds: int) -> dict[str, Any]:
    """Return how a configuration fared under a rate of arrivals, the worse the fewer rounds sustained it."""
    slow = 1 + 4 * (rounds - sustained)
    return {
        "phase": "backends",
        "configuration": name,
        "workload": "free",
        "rate_per_second": rate,
        "arrived_per_second": 0.96 * rate,
        "completed_per_second": 0.96 * rate / slow**0.5,
        "requests_lost": 0 if sustained else 7,
        "ttft_p50_seconds": 0.041 * slow,
        "ttft_p99_seconds": 0.18 * slow,
        "e2e_p99_seconds": 2.4 * slow,
        "in_flight_peak": 3 * slow,
        "rounds": rounds,
        "rounds_sustained": sustained,
    }


def elements(page: str) -> list[tuple[str, dict[str, str | None]]]:
    """Return a page's elements with their attributes, as an HTML parser sees them."""
    found: list[tuple[str, dict[str, str | None]]] = []

    class Elements(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.append((tag, dict(attrs)))

    Elements().feed(page)
    return found


def addresses(page: str) -> list[str]:
    """Return what a page would fetch by itself when it is opened."""
    return [
        str(attributes.get("src") or attributes.get("href"))
        for tag, attributes in elements(page)
        if "src" in attributes or (tag == "link" and "href" in attributes)
    ]


def failed(name: str, stage: str, reason: Reason) -> dict[str, Any]:
    """Return the elimination of a configuration."""
    return {
        "phase": "backends",
        "configuration": name,
        "stage": stage,
        "code": reason.code,
        "reason": reason.message,
        "evidence": list(reason.evidence),
        "links": list(reason.links),
        "remedy": remedy_of(reason),
    }


def answered(phase: str, names: Sequence[str]) -> dict[str, Any]:
    """Return how the answers of a phase agree with those of the first, the last the worst."""
    return {
        "phase": phase,
        "reference": names[0],
        "judged": True,
        "statement": f"Answers are held against {names[0]} on 3 of 4 prompts; it fails the other itself",
        "prompts": 4,
        "set_aside": ["What is the capital of France?"],
        "bound_nats": 0.25,
        "near_tie_nats": 0.5,
        "configurations": [
            {
                "configuration": name,
                "prompts": 4,
                "equal": 4 - index,
                "departures": {"near_tie": min(index, 2), "clear": max(0, index - 2), "unknown": 0},
                "shortest_common_prefix": 24 - 9 * min(index, 2),
                "prefix_unit": "tokens",
                "distance_nats": 0.036 * index,
                "distance_tokens": 22,
                "answer_distance_nats": 0.02 * index if phase == "backends" else None,
                "answer_distance_tokens": 40 if phase == "backends" else 0,
                "failed": [],
                "excused": [],
                "repeatability": 1.0,
                "steady": 4,
                "greedy_text": None
                if phase == "backends" or index == 0
                else {
                    "verdict": "changed" if index == len(names) - 1 else "same",
                    "why": "leaves the baseline's text at no near tie on 1 of 4 prompts "
                    "(gap up to 1.80 nats); the baseline itself does so on 0",
                },
            }
            for index, name in enumerate(names)
        ],
    }


def comparison(name: str, ratio: float, verdicts: Mapping[str, str], winner: str | None) -> dict[str, Any]:
    """Return how ``name`` compares with the winner."""
    verdict = verdicts.get(name, "slower" if ratio < 0.9 else "undecided")
    return {
        "phase": "backends",
        "a": name,
        "b": winner,
        "ratio": ratio,
        "ci": [ratio * 0.94, ratio * 1.06],
        "verdict": verdict,
        "rounds_needed": 4 if verdict == "undecided" else None,
        "confounders": [],
        "reason": "the interval does not settle it" if verdict == "undecided" else None,
    }


def verdict(base: str | None, name: str, workload: str, concurrency: int) -> dict[str, Any]:
    """Return whether a speculative configuration pays on a workload."""
    gain = GAINS[name][workload] * (1 if concurrency == 1 else 0.93)
    accepted = (DRAFTS[name][workload].accepted or 0) / 1000
    length = 1 / (1 - accepted)
    word = "pays" if gain > 1.1 else "costs" if gain < 0.9 else "undecided"
    return {
        "configuration": f"{base}+{name}",
        "baseline": f"{base}+none",
        "workload": workload,
        "concurrency": concurrency,
        "speedup": gain,
        "ci": [gain / math.exp(0.06), gain * math.exp(0.06)],
        "acceptance_length": length,
        "step_cost_ratio": length / gain,
        "break_even": length / gain,
        "draft_proposed": DRAFTS[name][workload].proposed,
        "draft_accepted": DRAFTS[name][workload].accepted,
        "derived": True,
        "rounds_needed": 3 if word == "undecided" else None,
        "evidence": "text",
        "verdict": word,
        "why": f"{length:.2f} tokens a pass against a step that costs {length / gain:.2f} plain ones",
    }

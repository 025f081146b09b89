"""How far the winner is from what its GPUs' memory allows.

Decoding reads all weights that a pass needs, and the cache of every request, once a pass; where that sets the
pace, it is the roof (Williams, Waterman and Patterson 2009, doi:10.1145/1498765.1498785; for decoding Pope et
al. 2022, https://arxiv.org/abs/2211.05102, section 2):

    passes/s <= bandwidth of all GPUs / bytes a pass
    bytes a pass = weights read whatever the tokens + routed experts * share of them that the tokens reach
                   + requests * (context * cache a token * copies + 2 * recurrent state)
    tok/s <= passes/s * requests * tokens a pass and request

Tensor parallelism splits the weights, so bandwidth adds up; the cache is copied where there are more GPUs
than heads. Tokens a pass are the acceptance length under speculation, whose drafts are left out: like
prefill, activations and the sums over GPUs they only lower what can be reached. gpu_bandwidth.json holds the
makers' peak bandwidths with their sources.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pivotbench.decision.metric import weighted_mean, window_mean
from pivotbench.decision.speculation import acceptance_length
from pivotbench.decision_rules import DecisionRules
from pivotbench.engines import get_engine
from pivotbench.evidence import CellFiles
from pivotbench.model.shape import ModelShape
from pivotbench.model_facts import recorded_shape
from pivotbench.settings import flat

BANDWIDTHS = Path(__file__).with_name("gpu_bandwidth.json")
Row = Mapping[str, Any]


def limit(rules: DecisionRules, cell: CellFiles | None, rows: Iterable[Row]) -> dict[str, Any]:
    """Return decision.json's ``limit`` for the configuration of ``cell``, the winner's last measured one.

    ``rows``: the measurements. Where model or GPU are not known, figures are null and ``reason`` says why.
    """
    if cell is None:
        return _unknown(None, "there is no winner that was measured")
    own = [row for row in rows if (row["phase"], row["configuration"]) == (cell.phase, cell.configuration)]
    shape, why = recorded_shape(cell.launch)
    gpu, gb_s, source, no_gpu = _bandwidth(cell.environment, rules.gpus)
    reason = no_gpu or why or _not_modelled(rules, cell)
    concurrency: int | None = rules.metric_concurrency
    if concurrency is None:
        reason = reason or "the study's metric names no single concurrency"
    if shape is None or gb_s is None or concurrency is None or reason:
        return _unknown(cell.configuration, str(reason), gpu)
    runs = {
        workload: [row for row in own if (row["workload"], row["concurrency"]) == (workload, concurrency)]
        for workload in rules.metric_weights
    }
    by_workload = [
        _of_workload(shape, gb_s * 1e9 * rules.gpus, rules.gpus, workload, concurrency, found)
        for workload, found in runs.items()
        if found and window_mean(found) > 0
    ]
    if not by_workload:
        return _unknown(cell.configuration, "the metric was not measured on it", gpu)
    measured, roof = (
        weighted_mean({w["workload"]: w[key] for w in by_workload}, rules.metric_weights)
        for key in ("measured_tok_s", "roofline_tok_s")
    )
    return {
        "configuration": cell.configuration,
        "gpu": gpu,
        "gpus": rules.gpus,
        "bandwidth_gb_s": gb_s,
        "source": source,
        "measured_tok_s": measured,
        "roofline_tok_s": roof,
        "share": measured / roof,
        "by_workload": by_workload,
        "reason": None,
    }


def bytes_per_pass(shape: ModelShape, requests: float, tokens: float, context: float, gpus: int) -> float:
    """Return the bytes that one decoding pass reads on all GPUs together.

    ``requests`` are decoded at once, ``tokens`` of them in all (more than requests under speculation), each
    after ``context`` tokens.
    """
    copies = max(1.0, gpus / shape.kv_heads)
    cached = context * shape.kv_bytes_per_token * copies + 2 * shape.state_bytes_per_request
    return shape.read_bytes + shape.expert_bytes * shape.expert_share(tokens) + requests * cached


def _of_workload(
    shape: ModelShape, bandwidth: float, gpus: int, workload: str, requests: int, runs: Sequence[Row]
) -> dict[str, Any]:
    """One workload's part; ``bandwidth`` in bytes/s of all GPUs, ``runs`` its rows at this concurrency."""
    length = acceptance_length(runs) or 1.0
    answered = [run for run in runs if run["requests"] and run["output_tokens"]]
    completed = sum(run["requests"] for run in answered)
    prompts = sum(run["prompt_tokens"] or 0 for run in answered) / completed if completed else 0.0
    answers = sum(run["output_tokens"] for run in answered) / completed if completed else 0.0
    context = prompts + answers / 2  # a pass in the middle of an answer
    read = bytes_per_pass(shape, requests, requests * length, context, gpus)
    measured, roof = window_mean(runs), bandwidth / read * requests * length
    return {
        "workload": workload,
        "concurrency": requests,
        "measured_tok_s": measured,
        "roofline_tok_s": roof,
        "share": measured / roof,
        "context_tokens": context,
        "bytes_per_pass": read,
        "cache_bytes_per_pass": read - bytes_per_pass(shape, 0, requests * length, 0.0, gpus),
        "tokens_per_pass": length,
    }


def _bandwidth(environment: Row, gpus: int) -> tuple[str | None, float | None, str | None, str | None]:
    """The GPU's name, its GB/s with the source, or why they are not known."""
    if not gpus:
        return None, None, None, "it ran on the CPU, whose memory bandwidth is not recorded"
    names = {str(gpu.get("name")) for gpu in environment.get("gpus") or ()}
    if len(names) != 1:
        return None, None, None, "the GPUs are not of one kind" if names else "no GPU was recorded"
    name = names.pop()
    for entry in _table():
        if entry["name"] == name:
            return name, float(entry["gb_s"]), str(entry["source"]), None
    return name, None, None, f"the memory bandwidth of {name} is not in {BANDWIDTHS.name}"


def _not_modelled(rules: DecisionRules, cell: CellFiles) -> str | None:
    spelling = get_engine(rules.engine).spelling
    settings = flat(cell.effective)
    sharing, replicas = (
        settings.get(name or "") for name in (spelling.tensor_parallel, spelling.data_parallel)
    )
    if sharing not in (None, rules.gpus) or replicas not in (None, 1):
        return "only GPUs that all share every layer are modelled"
    return None


def _unknown(configuration: str | None, reason: str, gpu: str | None = None) -> dict[str, Any]:
    figures = ("bandwidth_gb_s", "source", "measured_tok_s", "roofline_tok_s", "share")
    return {
        "configuration": configuration,
        "gpu": gpu,
        "gpus": None,
        **dict.fromkeys(figures),
        "by_workload": [],
        "reason": reason,
    }


@cache
def _table() -> list[dict[str, Any]]:
    return list(json.loads(BANDWIDTHS.read_text(encoding="utf-8")))

"""What can be said of a launch before it is tried: does the model fit, do the kernels exist, do flags agree.

A preflight is a warning. It never keeps a server from being tried unless the study says so, since what it
knows is what was read in sources and estimated from shapes, and a launch is the proof.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pivotbench.engines.findings import Facts, Finding, findings, number
from pivotbench.engines.rules import canonical, rules_of
from pivotbench.engines.sglang_memory import MemoryEstimate, estimate
from pivotbench.model.shape import ModelShape, UnknownShape, read_shape
from pivotbench.results import PREFLIGHT_REFUSED, Reason

_LATENT = ("deepseek_v2", "deepseek_v3")
_WITHOUT_DRAFT_HEADS = ("llama", "qwen2", "qwen3")


@dataclass(frozen=True)
class Preflight:
    """What is expected of a launch; ``unknown``: why the model's size could not be told, or None."""

    findings: tuple[Finding, ...]
    memory: MemoryEstimate | None = None
    unknown: str | None = None

    @property
    def blocking(self) -> tuple[Finding, ...]:
        """The findings that let a launch be expected to fail."""
        return tuple(finding for finding in self.findings if finding.blocks)

    def as_json(self) -> dict[str, Any]:
        """Return the ``preflight`` key of launch.json."""
        rows: list[dict[str, Any]] = json.loads(json.dumps([asdict(each) for each in self.findings]))
        memory = asdict(self.memory) if self.memory else None
        return {"findings": rows, "memory": memory, "unknown": self.unknown}

    def refusal(self) -> Reason | None:
        """Return the reason not to launch, or None where nothing is expected to fail."""
        if not self.blocking:
            return None
        first, more = self.blocking[0], len(self.blocking) - 1
        message = f"not launched, as the study asks: {first.message}{f' (and {more} more)' if more else ''}"
        return Reason(
            code=PREFLIGHT_REFUSED,
            kind="deterministic",
            message=message,
            evidence=tuple(f"{each.message} [{each.source}]" for each in self.blocking),
            links=tuple(dict.fromkeys(link for each in self.blocking for link in each.links)),
        )


def preflight(
    request: Mapping[str, Any], model: str, version: str | None, gpus: Sequence[Mapping[str, Any]]
) -> Preflight:
    """Return what is known beforehand of a launch request on this host.

    ``model``: as the engine is given it; ``version``: the engine's; ``gpus``: those of the host as
    launch.json records them (memory_mib, compute). Without a GPU nothing is said of memory and kernels, and
    nothing at all of an engine without rules.
    """
    engine = request["engine"]
    if not rules_of(engine)[1]:
        return Preflight(())
    flags = canonical(engine, request["flags"])
    shape, unknown = _shape(model, request, flags)
    facts = Facts(
        flags=request["flags"],
        gpus=request["gpus"],
        version=version,
        model=model_kinds(shape) | _at_odds(model, flags),
        weights=shape.quantization if shape else None,
        capabilities=tuple(sorted({int(str(gpu["compute"]).split(".")[0]) for gpu in gpus})),
    )
    found = findings(engine, facts)
    if shape is None or not gpus:
        return Preflight(tuple(found), unknown=unknown)
    smallest = min(gpu["memory_mib"] for gpu in gpus)
    memory = estimate(flags, smallest, shape, _draft_shape(flags))
    return Preflight((*found, *_of_memory(memory, flags)), memory)


def known_kinds(model: str, revision: str | None = None) -> frozenset[str]:
    """Return the kinds of a model whose config.json lies on this machine; none where it does not."""
    try:
        return model_kinds(read_shape(model, revision=revision))
    except UnknownShape:
        return frozenset()


def model_kinds(shape: ModelShape | None) -> frozenset[str]:
    """Return what rules call a model: hybrid, moe, latent or not-latent, no-mtp."""
    if shape is None:
        return frozenset()
    kinds = {
        "hybrid": shape.state_bytes_per_request > 0,
        "moe": shape.experts > 0,
        "latent": shape.architecture in _LATENT,
        "not-latent": shape.architecture not in _LATENT,
        "no-mtp": shape.architecture in _WITHOUT_DRAFT_HEADS,
    }
    return frozenset(name for name, holds in kinds.items() if holds)


def _shape(
    model: str, request: Mapping[str, Any], flags: Mapping[str, Any]
) -> tuple[ModelShape | None, str | None]:
    try:
        revision = (request.get("model") or {}).get("revision")
        return _read(model, flags, "quantization", revision), None
    except UnknownShape as error:
        return None, str(error)


def _draft_shape(flags: Mapping[str, Any]) -> ModelShape | None:
    draft = flags.get("speculative-draft-model-path")
    try:
        return None if draft is None else _read(str(draft), flags, "speculative-draft-model-quantization")
    except UnknownShape:
        return None


def _read(model: str, flags: Mapping[str, Any], quantization: str, revision: str | None = None) -> ModelShape:
    dtype, scheme, cache = (
        None if flags.get(name) is None else str(flags[name])
        for name in ("dtype", quantization, "kv-cache-dtype")
    )
    return read_shape(model, revision=revision, dtype=dtype, quantization=scheme, kv_dtype=cache)


def _at_odds(model: str, flags: Mapping[str, Any]) -> frozenset[str]:
    """How the model goes with these flags, as rules call it."""
    config, draft = _config(model), _config(flags.get("speculative-draft-model-path"))
    sizes = {size for c in (config, draft) if (size := number(c.get("vocab_size")))}
    odds = {
        "draft-vocabulary-differs": len(sizes) == 2,
        "expert-blocks-cut": _cuts_blocks(config, flags),
    }
    return frozenset(name for name, holds in odds.items() if holds)


def _cuts_blocks(config: Mapping[str, Any], flags: Mapping[str, Any]) -> bool:
    """Whether a rank's part of an expert is no whole number of blocks that share a scale."""
    columns, blocks = number(config.get("moe_intermediate_size")), config.get("weight_block_size")
    block = number(blocks[0]) if isinstance(blocks, list) and blocks else None
    if not columns or not block or flags.get("moe-a2a-backend", "none") != "none":
        return False  # the exchange between experts leaves each whole
    ranks = (number(flags.get("tp-size")) or 1) // (number(flags.get("ep-size")) or 1)
    return bool(columns % (block * max(1, ranks)))


def _config(model: Any) -> Mapping[str, Any]:
    """Return a local folder's config.json with what it nests; empty where it says nothing."""
    try:
        config = json.loads((Path(str(model)) / "config.json").read_text(encoding="utf-8"))
        return {**config, **(config.get("text_config") or {}), **(config.get("quantization_config") or {})}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _of_memory(memory: MemoryEstimate, flags: Mapping[str, Any]) -> list[Finding]:
    """What the estimate lets expect; where several hold, the gravest alone."""
    weights = memory.weights_mib + (memory.draft_weights_mib or 0)
    draft = f", {memory.draft_weights_mib:,} of them the draft's" if memory.draft_weights_mib else ""
    given = ("mem-fraction-static", "tp-size", "quantization", "speculative-draft-model-path")
    named = tuple(name for name in given if name in flags)
    if weights > memory.gpu_mib:
        message = (
            f"the weights take {weights:,} MiB of each GPU{draft}, which has {memory.gpu_mib:,}; "
            "divide the model over more GPUs (tp-size) or quantise it"
        )
        return [_memory("weights-exceed-memory", "fails", message, named)]
    if memory.cache_tokens <= 0:
        message = (
            f"the weights take {weights:,} MiB of each GPU{draft} and leave the cache nothing of the "
            f"{memory.static_mib:,} for both; raise mem-fraction-static or divide the model over more GPUs"
        )
        return [_memory("no-room-for-cache", "fails", message, named)]
    context = number(flags.get("context-length"))
    if context is not None and memory.cache_tokens < context:
        message = (
            f"the cache has room for {memory.cache_tokens:,} tokens at most, less than one request of "
            f"context-length {context:,}"
        )
        return [_memory("cache-below-context", "doubtful", message, (*named, "context-length"))]
    return []


def _memory(name: str, outcome: Any, message: str, flags: tuple[str, ...]) -> Finding:
    return Finding(name, outcome, message, "estimated from the model's config.json", flags=flags)

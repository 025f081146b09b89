"""How one engine names what limits a server's speed, and the flags that would test a remedy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Remedy = Literal[
    "speculate",  # decode speculatively
    "spare_client",  # leave the load generator more of the machine
    "narrow_weights",  # fewer bytes a weight
    "narrow_cache",  # fewer bytes a cached token
    "fuse_collectives",  # cheaper sums over the GPUs
    "other_collectives",
    "graphs",  # replay recorded kernels instead of launching them one by one
    "fewer_interrupts",  # more steps between two visits of the scheduler
    "shorter_prefills",  # take prompts up in smaller pieces
]


@dataclass(frozen=True)
class Topic:
    """One thing that several settings state: ``settings`` by dotted name, the first that tells it counts.

    ``flag`` asks for it.
    """

    flag: str
    settings: tuple[str, ...]

    def told(self, settings: Mapping[str, Any]) -> Any:
        """Return what the first of its settings that is known says; None where none is."""
        return next((settings[n] for n in self.settings if settings.get(n) is not None), None)


@dataclass(frozen=True)
class SideEffect:
    """What the engine changes by itself with a flag: ``asked`` begins the flag's name."""

    asked: str
    setting: str
    says: str


@dataclass(frozen=True)
class DraftGraphs:
    """Which attention of a draft model keeps part of its work out of the recorded kernels.

    ``algorithms`` are the values of the setting ``algorithm`` that run a draft model; ``attention`` tells its
    backend. The ``eager`` ones are not recorded when the draft catches up after each pass, ``recorded`` is.
    """

    algorithm: str
    algorithms: frozenset[str]
    attention: Topic
    eager: frozenset[str]
    recorded: str


@dataclass(frozen=True)
class Spelling:
    """Names are settings as the server reports them, with underscores and dots; None is not known.

    ``requests``: how many it serves at once; ``tokens``: how many its cache holds; ``graphs``: the batch
    sizes with recorded kernels; ``graphs_off``: switches that turn these off. ``tensor_parallel`` and
    ``data_parallel``: GPUs that share and that repeat the model. ``belongs``: prefixes of settings that are
    part of a flag that begins alike. ``says_nothing``: settings that repeat others or keep a diary.
    ``graphs_reach``: the flag of the largest batch with recorded kernels, ``graphs_asked``: how the names of
    all begin that ask for them, aliases too; ``draft_length``: flags that say how far drafts reach;
    ``draft_graphs``: which drafts are recorded. ``remedies``: flags to try; what an engine has no flag for is
    not among them.
    """

    requests: Topic | None = None
    tokens: Topic | None = None
    graphs: Topic | None = None
    graphs_off: tuple[str, ...] = ()
    tensor_parallel: str | None = None
    data_parallel: str | None = None
    dtype: str | None = None
    quantization: str | None = None
    cache_dtype: str | None = None
    belongs: tuple[str, ...] = ()
    says_nothing: tuple[str, ...] = ()
    side_effects: tuple[SideEffect, ...] = ()
    graphs_reach: str | None = None
    graphs_asked: tuple[str, ...] = ()
    draft_length: tuple[str, ...] = ()
    draft_graphs: DraftGraphs | None = None
    remedies: Mapping[Remedy, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def topics(self) -> tuple[Topic, ...]:
        """What several settings state."""
        return tuple(t for t in (self.requests, self.tokens, self.graphs) if t is not None)


SGLANG_SPELLING = Spelling(
    requests=Topic(
        "max-running-requests",
        (
            "internal_states.0.effective_max_running_requests_per_dp",
            "effective_max_running_requests_per_dp",
            "max_running_requests",
            "pp_max_micro_batch_size",
        ),
    ),
    tokens=Topic(
        "max-total-tokens", ("internal_states.0.memory_usage.token_capacity", "max_total_num_tokens")
    ),
    graphs=Topic(
        "cuda-graph-bs-decode",
        ("cuda_graph_config.decode.bs", "cuda_graph_bs_decode", "cuda_graph_bs"),
    ),
    graphs_off=("disable_cuda_graph", "disable_decode_cuda_graph"),
    tensor_parallel="tp_size",
    data_parallel="dp_size",
    dtype="dtype",
    quantization="quantization",
    cache_dtype="kv_cache_dtype",
    belongs=("speculative_",),
    says_nothing=("_runtime_mutations", "_resolved_overrides", "memory_usage"),
    side_effects=(
        SideEffect(
            "speculative",
            "max_running_requests",
            "under speculation SGLang serves 48 requests at once where the study names no number",
        ),
        SideEffect(
            "speculative",
            "disable_overlap_schedule",
            "SGLang may turn overlap scheduling off under speculation: the CPU's work then delays each step",
        ),
        SideEffect(
            "speculative", "enable_mixed_chunk", "SGLang does not mix prefill and decode under speculation"
        ),
        SideEffect(
            "speculative",
            "cuda_graph_bs_decode",
            "under speculation SGLang records every batch size, since each request brings several tokens",
        ),
        SideEffect(
            "speculative",
            "max_total_tokens",
            "the draft model and its cache take memory from the cache of tokens",
        ),
        SideEffect(
            "quantization", "max_total_tokens", "narrower weights leave more memory for the cache of tokens"
        ),
    ),
    graphs_reach="cuda-graph-max-bs-decode",
    graphs_asked=("cuda_graph_",),
    draft_length=("speculative-num-steps", "speculative-num-draft-tokens"),
    # eagle_worker_v2.py of 0.5.16; https://github.com/sgl-project/sglang/pull/40762 would record fa3 and fa4.
    draft_graphs=DraftGraphs(
        "speculative_algorithm",
        frozenset({"EAGLE", "EAGLE3", "NEXTN", "STANDALONE"}),
        Topic(
            "speculative-draft-attention-backend",
            ("speculative_draft_attention_backend", "prefill_attention_backend", "attention_backend"),
        ),
        frozenset({"fa3", "fa4"}),
        "triton",
    ),
    remedies={
        "speculate": {"speculative-algorithm": "NGRAM", "speculative-num-draft-tokens": 4},
        "spare_client": {"stream-interval": 4},
        "narrow_weights": {"quantization": "fp8"},
        "narrow_cache": {"kv-cache-dtype": "fp8_e4m3"},
        "fuse_collectives": {"enable-flashinfer-allreduce-fusion": True},
        "other_collectives": {"enable-mscclpp": True},
        "graphs": {"disable-cuda-graph": False},
        "fewer_interrupts": {"num-continuous-decode-steps": 4},
        "shorter_prefills": {"chunked-prefill-size": 2048},
    },
)

LLAMACPP_SPELLING = Spelling(
    requests=Topic("parallel", ("parallel",)),
    tokens=Topic("ctx-size", ("ctx_size",)),
    belongs=("spec_",),
    says_nothing=("slot_ctx_size",),
    draft_length=(
        "spec-draft-n-max",
        "spec-ngram-simple-size-m",
        "spec-ngram-map-k-size-m",
        "spec-ngram-map-k4v-size-m",
        "spec-ngram-mod-n-max",
    ),
    remedies={
        "speculate": {"spec-type": "ngram-simple"},
        "spare_client": {"threads": 1},
        "shorter_prefills": {"ubatch-size": 128},
    },
)

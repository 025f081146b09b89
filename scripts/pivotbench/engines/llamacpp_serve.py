"""llama.cpp's own HTTP server with command line flags; run by the interpreter of the engine's environment.

Only the standard library and ``xllamacpp`` are imported. Flags carry the names of llama.cpp's server; each
is kept by argparse under the path of the ``CommonParams`` field it sets, so the parser below is the only
list of flags there is. Flags that are not given leave llama.cpp's default alone, with three exceptions:
metrics and chat templates are on, and ``--fit`` is off, because it changes settings that were asked for.
"""

from __future__ import annotations

import argparse
import importlib
import json
import signal
import sys
import threading
import time
from typing import Any

STARTUP_DETAILS = 4  # the lowest log level that states threads, attention, KV cache and buffers
LOG_THREAD_SECONDS = 0.05

CACHE_TYPES = ("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1")
SPECULATIVE_TYPES = (
    "none",
    "draft-simple",
    "draft-eagle3",
    "draft-mtp",
    "draft-dflash",
    "draft-dspark",
    "ngram-simple",
    "ngram-map-k",
    "ngram-map-k4v",
    "ngram-mod",
    "ngram-cache",
)
CACHE_TYPE = ("ggml_type", {name: f"GGML_TYPE_{name.upper()}" for name in CACHE_TYPES})

# Field -> the enumeration it holds, and the member each choice stands for.
ENUMERATIONS: dict[str, tuple[str, dict[str, str]]] = {
    "flash_attn_type": (
        "llama_flash_attn_type",
        {
            "on": "LLAMA_FLASH_ATTN_TYPE_ENABLED",
            "off": "LLAMA_FLASH_ATTN_TYPE_DISABLED",
            "auto": "LLAMA_FLASH_ATTN_TYPE_AUTO",
        },
    ),
    "cache_type_k": CACHE_TYPE,
    "cache_type_v": CACHE_TYPE,
    "speculative.draft.cache_type_k": CACHE_TYPE,
    "speculative.draft.cache_type_v": CACHE_TYPE,
    "speculative.types": (
        "common_speculative_type",
        {name: f"COMMON_SPECULATIVE_TYPE_{name.upper().replace('-', '_')}" for name in SPECULATIVE_TYPES},
    ),
    "load_mode": (
        "llama_load_mode",
        {
            "auto": "LLAMA_LOAD_MODE_AUTO",
            "none": "LLAMA_LOAD_MODE_NONE",
            "mmap": "LLAMA_LOAD_MODE_MMAP",
            "mlock": "LLAMA_LOAD_MODE_MLOCK",
            "mmap+mlock": "LLAMA_LOAD_MODE_MMAP_MLOCK",
            "dio": "LLAMA_LOAD_MODE_DIRECT_IO",
        },
    ),
    "numa": (
        "ggml_numa_strategy",
        {
            "distribute": "GGML_NUMA_STRATEGY_DISTRIBUTE",
            "isolate": "GGML_NUMA_STRATEGY_ISOLATE",
            "numactl": "GGML_NUMA_STRATEGY_NUMACTL",
        },
    ),
}


def build_parser() -> argparse.ArgumentParser:
    """Return the parser: every flag's destination is the path of the ``CommonParams`` field it sets."""
    parser = argparse.ArgumentParser(
        prog="llamacpp_serve", description=__doc__, argument_default=argparse.SUPPRESS, allow_abbrev=False
    )

    def integer(flags: str, field: str, text: str) -> None:
        parser.add_argument(*flags.split(), dest=field, type=int, metavar="N", help=text)

    def number(flags: str, field: str, text: str) -> None:
        parser.add_argument(*flags.split(), dest=field, type=float, metavar="X", help=text)

    def path(flags: str, field: str, text: str) -> None:
        parser.add_argument(*flags.split(), dest=field, metavar="FILE", help=text)

    def switch(flag: str, field: str, value: bool, text: str) -> None:
        parser.add_argument(flag, dest=field, action="store_const", const=value, help=text)

    def choice(flags: str, field: str, text: str, nargs: str | None = None) -> None:
        choices = tuple(ENUMERATIONS[field][1])
        parser.add_argument(*flags.split(), dest=field, choices=choices, nargs=nargs, help=text)

    parser.add_argument(
        "--print-flags", dest="print_flags", action="store_true", help="print the flags as JSON and exit"
    )

    path("--model", "model.path", "the model, a GGUF file")
    parser.add_argument("--alias", dest="model_alias", metavar="NAME", help="name the model is served under")
    parser.add_argument("--host", dest="hostnames", metavar="ADDRESS", help="address to listen on")
    integer("--port", "port", "port to listen on; 0 takes a free one")

    integer("--threads", "cpuparams.n_threads", "threads that generate")
    integer("--threads-batch", "cpuparams_batch.n_threads", "threads that read prompts")
    integer("--threads-http", "n_threads_http", "threads that answer requests")
    integer("--poll", "cpuparams.poll", "how eagerly idle threads spin instead of sleeping, 0 to 100")
    choice("--numa", "numa", "placement of threads and memory over NUMA nodes")

    integer("--parallel", "n_parallel", "slots: requests served at once")
    integer("--ctx-size", "n_ctx", "context in tokens, shared among the slots; 0 takes the model's")
    integer("--batch-size", "n_batch", "tokens taken up at once, at most")
    integer("--ubatch-size", "n_ubatch", "tokens computed at once, at most")
    switch("--no-cont-batching", "cont_batching", False, "do not add requests to a running batch")
    integer("--n-gpu-layers --gpu-layers", "n_gpu_layers", "layers kept on the GPU")

    choice("--flash-attn", "flash_attn_type", "flash attention")
    choice("--cache-type-k", "cache_type_k", "type of the cached keys")
    choice("--cache-type-v", "cache_type_v", "type of the cached values; quantized ones need flash attention")
    switch("--kv-unified", "kv_unified", True, "one KV cache shared by all slots")
    switch("--no-kv-unified", "kv_unified", False, "a KV cache for each slot")
    switch("--swa-full", "swa_full", True, "keep the whole cache of sliding window layers")
    switch("--no-cache-prompt", "cache_prompt", False, "do not reuse the cached part of a prompt")
    integer("--cache-reuse", "n_cache_reuse", "smallest chunk reused from the cache by shifting")
    integer("--cache-ram", "cache_ram_mib", "cache of past prompts in MiB; 0 for none, -1 for no limit")
    switch("--no-cache-idle-slots", "cache_idle_slots", False, "do not move idle slots to that cache")
    number("--slot-prompt-similarity", "slot_prompt_similarity", "match that lets a prompt reuse a slot")

    switch("--no-repack", "no_extra_bufts", True, "keep the weights as stored instead of repacking them")
    choice("--load-mode", "load_mode", "how the model file is read")
    switch("--no-warmup", "warmup", False, "skip the empty run before the first request")
    parser.add_argument(
        "--fit", dest="fit_params", choices=("on", "off"), help="let llama.cpp adjust settings to the memory"
    )

    choice("--spec-type", "speculative.types", "kinds of speculative decoding", nargs="+")
    for kind in ("simple", "map-k", "map-k4v"):
        field = f"speculative.ngram_{kind.replace('-', '_')}"
        integer(f"--spec-ngram-{kind}-size-n", f"{field}.size_n", f"ngram-{kind}: tokens looked up")
        integer(f"--spec-ngram-{kind}-size-m", f"{field}.size_m", f"ngram-{kind}: tokens drafted")
        integer(f"--spec-ngram-{kind}-min-hits", f"{field}.min_hits", f"ngram-{kind}: matches before a draft")
    integer("--spec-ngram-mod-n-match", "speculative.ngram_mod.n_match", "ngram-mod: tokens looked up")
    integer("--spec-ngram-mod-n-min", "speculative.ngram_mod.n_min", "ngram-mod: shortest draft")
    integer("--spec-ngram-mod-n-max", "speculative.ngram_mod.n_max", "ngram-mod: longest draft")
    path("--lookup-cache-static", "speculative.ngram_cache.lookup_cache_static", "ngram-cache: fixed ones")
    path("--lookup-cache-dynamic", "speculative.ngram_cache.lookup_cache_dynamic", "ngram-cache: learnt ones")
    path("--spec-draft-model --model-draft", "speculative.draft.mparams.path", "the draft model, a GGUF file")
    integer("--spec-draft-n-max", "speculative.draft.n_max", "longest draft in tokens")
    integer("--spec-draft-n-min", "speculative.draft.n_min", "shortest draft in tokens")
    number("--spec-draft-p-min", "speculative.draft.p_min", "probability a drafted token needs")
    number("--spec-draft-p-split", "speculative.draft.p_split", "probability that splits a draft")
    integer(
        "--spec-draft-threads --threads-draft", "speculative.draft.cpuparams.n_threads", "drafting threads"
    )
    choice("--spec-draft-type-k --cache-type-k-draft", "speculative.draft.cache_type_k", "its cached keys")
    choice("--spec-draft-type-v --cache-type-v-draft", "speculative.draft.cache_type_v", "its cached values")
    return parser


def catalogue(parser: argparse.ArgumentParser, version: str) -> dict[str, Any]:
    """Return {engine, version, flags}, a flag being {name, aliases, choices, takes_value, many, help}."""
    flags = []
    for action in parser._actions:
        if action.dest in ("help", "print_flags"):
            continue
        name, *aliases = [option.removeprefix("--") for option in action.option_strings if option[:2] == "--"]
        flags.append(
            {
                "name": name,
                "aliases": aliases,
                "choices": [str(c) for c in action.choices] if action.choices else None,
                "takes_value": action.nargs != 0,
                "many": action.nargs == "+",
                "help": action.help or "",
            }
        )
    return {"engine": "llamacpp", "version": version, "flags": flags}


def set_field(xllamacpp: Any, params: Any, field: str, value: Any) -> None:
    """Set a field of ``CommonParams`` by its dotted path; raises AttributeError where there is none."""
    if field in ENUMERATIONS:
        enumeration, members = ENUMERATIONS[field]
        kind = getattr(xllamacpp, enumeration)
        value = [kind[members[v]] for v in value] if isinstance(value, list) else kind[members[value]]
    elif field == "model_alias":
        value = {value}
    elif field == "hostnames":
        value = [value]
    elif field == "fit_params":
        value = value == "on"
    *owners, name = field.split(".")
    for owner in owners:
        params = getattr(params, owner)
    getattr(params, name)
    setattr(params, name, value)


def common_params(xllamacpp: Any, settings: dict[str, Any]) -> Any:
    """Return the ``CommonParams`` of parsed flags ``{field path: value}``."""
    params = xllamacpp.CommonParams()
    params.use_jinja = True
    params.endpoint_metrics = True
    params.fit_params = False
    params.verbosity = STARTUP_DETAILS
    for field, value in settings.items():
        set_field(xllamacpp, params, field, value)
    return params


def serve(xllamacpp: Any, params: Any) -> int:
    """Serve until SIGTERM or SIGINT; return 0, or 1 where the server could not start.

    llama.cpp logs to stderr and itself says where it listens.
    """
    # While the model loads, Python runs no handlers: the default action ends the process at once.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        server = xllamacpp.Server(params)
    except RuntimeError as error:
        time.sleep(LOG_THREAD_SECONDS)  # llama.cpp logs from its own thread; let it finish its last line
        print(f"llamacpp_serve: the server did not start: {error}", file=sys.stderr, flush=True)
        return 1
    asked_to_stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: asked_to_stop.set())
    while not asked_to_stop.wait(3600):
        pass
    del server
    return 0


def main(argv: list[str] | None = None) -> int:
    """Print the flags, or serve; the exit status is 0, 1 (no server) or 2 (wrong flags)."""
    parser = build_parser()
    settings = vars(parser.parse_args(argv))
    xllamacpp = importlib.import_module("xllamacpp")
    if settings.pop("print_flags", False):
        print(json.dumps(catalogue(parser, xllamacpp.__version__)))
        return 0
    if "model.path" not in settings:
        parser.error("--model is required")
    return serve(xllamacpp, common_params(xllamacpp, settings))


if __name__ == "__main__":
    sys.exit(main())

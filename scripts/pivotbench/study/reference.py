"""config/README.md: every key, made from the models by ``python -m pivotbench.study.reference``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pivotbench.files import write_text
from pivotbench.study.fields import RESERVED_NAMES
from pivotbench.study.schema import study_schema

REFERENCE_FILE = Path(__file__).parents[3] / "config" / "README.md"

# Heading in the reference -> the mapping it describes; None is the study itself.
_SECTIONS: tuple[tuple[str, str | None], ...] = (
    ("The study", None),
    ("`container`", "Container"),
    ("`versions.<name>`", "Version"),
    ("`model`", "Model"),
    ("`backends`", "Backends"),
    ("`speculative`", "Speculative"),
    ("`smoke`", "Smoke"),
    ("`smoke.prompts[]`", "SmokePrompt"),
    ("`throughput`", "Throughput"),
    ("`throughput.workloads.<name>`", "Workload"),
    ("`decision`", "Decision"),
    ("`decision.metric`", "Metric"),
    ("`decision.metric.goodput`", "Goodput"),
    ("`decision.metric.goodput.ttft_seconds`, `tpot_seconds` and `e2e_seconds`", "Percentiles"),
    ("`decision.rounds`", "Rounds"),
    ("`decision.budget`", "Budget"),
    ("`decision.hypotheses[]`", "Hypothesis"),
    ("`hosts`", "Hosts"),
)

_INTRODUCTION = """\
# The study file

A study is one YAML file: `snakemake --cores 1 all --config study=PATH`. Without `study=`, it is
[config.yaml](config.yaml), which needs no GPU. A wrong study is refused before anything starts, with the
file, the line, the key and, for a misspelling, the nearest right one. Editors that know YAML schemas complete
and check keys when the first line names
[the schema](../workflow/schemas/study.schema.json), as in config.yaml.

This page is generated from the models in `scripts/pivotbench/study/`:
`PYTHONPATH=scripts python -m pivotbench.study.reference`.

## Rules for every key

- A key that is not listed here is refused, and so is a key given twice or without a value.
- Only `true` and `false` are booleans: `on`, `off`, `yes` and `no` are text, as servers expect them.
- A number that is meant as text, such as a revision of digits only, goes in quotes.
- Relative paths start from the study file's folder.
- Anchors and aliases work; merge keys (`<<`) and tags (`!x`) do not.
- Names of studies, configurations and workloads are lower-case letters, digits, `.` and `-`, 100 characters
  at most, and begin with a letter or a digit.
- These cannot name a configuration: RESERVED.
- The order of keys never matters.

## Flags

`serve`, each configuration of `backends`, and each of `speculative` are flags of the engine's own command
line, written without dashes. A speculative configuration is added to its backend, and that to `serve`;
where two give the same flag, the more special one wins. `true` gives a flag without a value, `false` leaves
it out, and a list gives several values to a flag that takes them. Flags are checked against the list of the
very version that gets them, read once under the study's `env` and kept, and against what is known of sets
that do not go together ([speculation](../scripts/pivotbench/engines/facts/sglang-speculation.yaml),
[backends](../scripts/pivotbench/engines/facts/sglang-backends.yaml), each rule with its source): a set that
this version refuses by itself is refused with its line, any other is a warning. Another spelling of a flag is
known as that flag, and a deprecated one is used with a warning that names its successor. The model, the
address, the port and the served name are set for every launch and cannot be flags of a study.

A `matrix` makes one configuration of every combination of its values, less those that `exclude` matches;
named configurations may stand beside it. A generated name joins the values in the order of their flags'
names; numbers, booleans and words such as `on` carry their flag:

```yaml
backends:
  matrix: {attention-backend: [triton, flashinfer], num-continuous-decode-steps: [1, 4]}
  exclude: [{attention-backend: triton, num-continuous-decode-steps: 4}]
# flashinfer-num-continuous-decode-steps-1, flashinfer-num-continuous-decode-steps-4,
# triton-num-continuous-decode-steps-1
```

## The metric

One number decides: the speed at one concurrency, or goodput, the speed at the largest load that meets limits
of latency. No load is assumed: a study names one of the two, and goodput the loads that are searched.

```yaml
decision:
  metric: {workloads: {chat: 3, code: 1}, concurrency: 16}
```

```yaml
throughput:
  min_requests: 100   # one in a hundred is what a p99 is about
  workloads:
    chat: {kind: text, prompts: chat.jsonl, output_tokens: 256, rate: [1, 1.25, 1.5, 2, 2.5, 3]}
decision:
  metric:
    workloads: {chat: 1}
    goodput: {over: rate, ttft_seconds: {p99: 0.5}, tpot_seconds: {p95: 0.05}, e2e_seconds: {p99: 20}}
```

## Versions and containers

The engine is the one Pivotbench installs from `envs/<engine>.txt`, an environment of yours (`python`), or a
container image (`container`). To compare versions, name them under `versions` and let each configuration say
which one it runs, by `version` among its flags; one that says nothing runs the study's own engine:

```yaml
versions:
  old: {python: ../venvs/sglang-0.5.16/bin/python}
  new: {container: {image: "lmsysorg/sglang:v0.5.23", args: [--ulimit=memlock=-1]}}
backends:
  matrix: {version: [old, new], attention-backend: [fa3, triton]}
  exclude: [{version: old, attention-backend: triton}]
# fa3-new, fa3-old, triton-new: is new faster than old with the same flags?
```

The version is then a factor of the study, so its configurations are compared although their engines differ;
driver, GPUs, processor and model must still be the same. Speculation runs on its backend's version.

Docker gets the GPUs by UUID, the host's network and IPC, the variables of `env`, and these folders at their
own paths: the model and whatever file a flag names (read-only, with what links in them lead to), the hub's
cache (`HF_HOME`), and a folder in `$PIVOTBENCH_CACHE` that is the server's `HOME`, so that compiled kernels
outlive a launch. What a server writes there belongs to the user it runs as inside, mostly root;
`args: ["--user=1000:1000"]` changes that. Who may ask docker's daemon can read a running container's
environment, secrets included; no command line has those.

An image that is not there is pulled before the launch is timed. A server's container is named
`pivotbench-<launch id>` and ended by `docker stop`, then `docker kill`; as for any server, its end counts
only when processes, port and GPU memory are free. Where those who watched over it were killed, the next run
ends it. Apptainer (`runtime: apptainer`) runs a server as a process of yours with `--nv`.

Docker was tested for real on Debian 12 without GPUs: its daemon 20.10.24, by the command of that version and
of 28.2.2, for root and for a user who may ask the daemon. An image with llama.cpp's server went through all
four stages, and after kills of stage, run, supervisor and guard no container was left. `--gpus` was not tried
on a GPU, and Apptainer is tested by a stand-in that takes its command line.

## Secrets

A key or token never stands in a study: variables and flags that take one, and texts that look like one, are
refused. Set it where `snakemake` is started and name it, `secrets: [HF_TOKEN]`: the run checks that it is
set, the server gets it by its environment (in a container too), and no result depends on it. Its value, and
that of every other variable of yours whose name ends in `TOKEN`, `KEY`, `SECRET`, `PASSWORD` or the like,
is taken out of stage files, records, raw requests and server logs wherever it has 8 characters or more. A
server writes its log by itself, so that it never waits for a reader: a log that is still being written can be
read by you alone, and is cleaned when its server ends.

Servers listen on 127.0.0.1 alone, need no key, and no key of a study changes that. Code that comes with a
model is run only where the study says so (`trust-remote-code: true` for sglang), and the report then says
it too.

## Several servers on one host

A server takes `hosts.gpus` free GPUs of the host, each held by a lock that all users heed, and a port of
its own. Beside that it gets a folder for compiled kernels in `$PIVOTBENCH_CACHE/kernels`, one for each set
of GPUs and version of the engine, which is kept from launch to launch. In it lie what servers at work may
not share: PyTorch's extensions (a server killed while it compiles leaves a file that later ones wait for
without end; it is removed here), the modules of TVM and SGLang (another server may load them half-written),
and FlashInfer's (one launch would wait for another's compiler). Triton, TorchInductor, DeepGEMM and CUDA
put whole files into place, and share their own folders as ever. The first launch on a set of GPUs compiles,
later ones do not. A study's `env` or your environment may set the variables (`FLASHINFER_WORKSPACE_BASE`,
`TORCH_EXTENSIONS_DIR`, `TVM_FFI_CACHE_DIR`, `SGLANG_JIT_CACHE_DIR`) otherwise; launch.json tells the
folders under `slot`. They may be removed whenever no server runs.

`hosts.numa: true` binds the whole server to the NUMA nodes of its GPUs, processors and memory alike, and
takes GPUs of one node wherever a node has enough. A server over the GPUs of two nodes gets both; to bind
rank by rank use the engine's own flag (`numa-node` for sglang). What was bound stands in launch.json under
`slot`; where the host tells no nodes, or lets only processors be bound, the launch says so in a line and
goes on.

## Prompt files

One JSON object a line, with an `id` that is unique in the file, and `prompt`, which is what the user says,
or `messages`, a conversation with one answer left to give, or `turns`, what the user says one after the
other:

```json
{"id": "sky", "prompt": "Why is the sky blue?"}
{"id": "sea", "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}]}
{"id": "tea", "system": "Be brief.", "turns": ["How do I make tea?", "And green tea?", "For six people?"]}
```

Each of `turns` is sent after the answer to the one before, with the real answers (reasoning included) as
history; nothing of it is cut, so the context must hold all turns and answers. A worker keeps a conversation
to its end. Only the first turn is salted: a prefix cache may answer the history of the later ones.

[prompts/](prompts/README.md) holds ready-made sets, from open prose (the hard case for drafting) over code,
questions and conversations to extraction and copying (the best case).
"""


def reference_text() -> str:
    """Return the reference as it is committed."""
    schema = study_schema()
    definitions = schema["$defs"]
    reserved = ", ".join(f"`{name}`" for name in sorted(RESERVED_NAMES))
    parts = [_INTRODUCTION.replace("RESERVED", reserved)]
    for heading, name in _SECTIONS:
        definition = definitions[name] if name else schema
        parts.append(_section(heading, definition, definitions))
    return "\n".join(parts)


def _section(heading: str, definition: dict[str, Any], definitions: dict[str, Any]) -> str:
    required = definition.get("required", [])
    rows = [f"## {heading}", "", definition["description"], ""]
    rows += ["| key | type | default | meaning |", "|---|---|---|---|"]
    for key, field in definition["properties"].items():
        default = "**required**" if key in required else _default(field)
        rows.append(f"| `{key}` | {_type(field, definitions)} | {default} | {field['description']} |")
    if "patternProperties" in definition:
        rows.append("| any other name | mapping of flags | | The flags of the configuration of that name. |")
    return "\n".join(rows) + "\n"


def _default(field: dict[str, Any]) -> str:
    if "default" not in field:
        return ""
    default = field["default"]
    return f"`{int(default) if isinstance(default, float) and default.is_integer() else default}`"


def _type(field: dict[str, Any], definitions: dict[str, Any]) -> str:
    if "enum" in field:
        return " or ".join(f"`{choice}`" for choice in field["enum"])
    if "$ref" in field:
        return "mapping, below" if field["$ref"].rsplit("/", 1)[1] in definitions else "mapping"
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(_type(item, definitions) for item in field["anyOf"]))
    if field["type"] == "array":
        return f"list of {_plural(_type(field['items'], definitions))}"
    if field["type"] == "object":
        return "mapping" if "additionalProperties" not in field else _mapping(field["additionalProperties"])
    words = {"string": "text", "integer": "whole number", "number": "number", "boolean": "boolean"}
    return words[field["type"]] + _range(field)


def _mapping(values: dict[str, Any]) -> str:
    if values.get("type") == "number":
        return "mapping of numbers"
    if "anyOf" in values:
        return "mapping of flags"
    return "mapping of lists" if values.get("type") == "array" else "mapping"


def _plural(words: str) -> str:
    return words.replace("number", "numbers", 1).replace("mapping", "mappings", 1)


def _range(field: dict[str, Any]) -> str:
    if "exclusiveMaximum" in field:
        return f" between {field['exclusiveMinimum']:g} and {field['exclusiveMaximum']:g}"
    if "exclusiveMinimum" in field:
        return f" above {field['exclusiveMinimum']:g}"
    return f", at least {field['minimum']:g}" if "minimum" in field else ""


def main() -> None:
    """Write the reference to its place in the repository."""
    write_text(REFERENCE_FILE, reference_text())
    print(f"wrote {REFERENCE_FILE}")


if __name__ == "__main__":
    main()

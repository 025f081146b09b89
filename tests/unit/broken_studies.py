"""A corpus of wrong studies; a comment ``#<`` marks the line that the error must name."""

from __future__ import annotations

from study_samples import RIGHT, changed

HERE = "#<"
LONG = "a" * 300
TOO_LONG = "File name too long"
GOODPUT_KEY = "decision.metric.goodput"
PLAIN = "  plain: {}\n"
FREE = "free: {kind: text, prompts: free.jsonl, output_tokens: 16, concurrency: [1, 4]}"
FREE_KEY = "throughput.workloads.free"
TEXT = "kind: text, prompts: free.jsonl, output_tokens: 8"
QUESTIONS = '  prompts:\n    - {ask: "What is 2+2?", contains: "4"}\n    - {ask: "Name a colour."}'
NOISE = "noise: {kind: synthetic, prompt_tokens: 32, output_tokens: 16, concurrency: [1]}"
MODEL = "model: org/small-model"
PACKAGE = "model:\n  package: p==1\n  file: a/b.gguf\n  sha256: " + "a" * 64 + "\n"


def backends(text: str) -> str:
    return changed("backends:\n  plain: {}\n  flash: {flash-attn: on}\n", "backends:\n  plain: {}\n" + text)


def free(text: str) -> str:
    return changed(FREE, f"free: {{{text}}} #<")


def metric(text: str) -> str:
    return changed("{free: 1}, concurrency: 1}", text)


def goodput(text: str) -> str:
    return metric(f"{{free: 1}}, goodput: {{{text}}}}} #<")


VERSIONS = "versions: {old: {python: old/python}}\n"


def sglang(text: str, top: str = "") -> str:
    """A study of engine sglang with this beside its plain backend, and these keys at the top."""
    return backends(text).replace("engine: llamacpp", "engine: sglang") + top


# (what is wrong, the study, the key named, words of the message)
BROKEN = [
    ("top key misspelt", changed("smoke:", "smok: #<"), "smok", "did you mean 'smoke'?"),
    ("unrelated key", RIGHT + "zzz: 1 #<\n", "zzz", "known: backends, container"),
    ("name missing", "engine: llamacpp #<\n" + RIGHT.split("\n", 2)[2], "name", "is required"),
    ("name a number", changed("name: sample", "name: 12 #<"), "name", "put text in quotes"),
    ("name a path", changed("name: sample", "name: ../sample #<"), "name", "try 'sample'"),
    ("name in capitals", changed("name: sample", "name: My Study #<"), "name", "try 'my-study'"),
    ("name reserved", changed("name: sample", "name: compare #<"), "name", "reserved"),
    ("name too long", changed("name: sample", f"name: {'a' * 101} #<"), "name", "100 characters"),
    ("engine misspelt", changed("llamacpp", "lamacpp #<"), "engine", "did you mean 'llamacpp'?"),
    ("engine a list", changed("llamacpp", "[sglang] #<"), "engine", "not a list"),
    ("engine twice", changed("engine: llamacpp", "engine: sglang\nengine: sglang #<"), "engine", "line 2"),
    ("env a boolean", RIGHT + "env: {DEBUG: true} #<\n", "env.DEBUG", "put text in quotes"),
    ("env bad name", RIGHT + "env: {NO-DASH: a} #<\n", "env.NO-DASH", "environment variable"),
    ("python two lines", RIGHT + 'python: "a\\nb" #<\n', "python", "path"),
    ("python a number", RIGHT + "python: 3 #<\n", "python", "path"),
    ("two origins", sglang("", "python: a/python\ncontainer: a/b #<\n"), "container", "either python or"),
    ("container llamacpp", RIGHT + "container: a/b:1 #<\n", "container", "give python"),
    ("container misspelt", sglang("", "container: {imag: a #<\n}\n"), "container.imag", "mean 'image'?"),
    (
        "runtime unknown",
        sglang("", "container: {image: a, runtime: lxc #<\n}\n"),
        "container.runtime",
        "docker",
    ),
    ("docker a file", sglang("", "container: ./a.sif #<\n"), "container.image", "runtime apptainer"),
    (
        "no such sif",
        sglang("", "container: {runtime: apptainer, image: a.sif #<\n}\n"),
        "container.image",
        "no such image",
    ),
    ("version empty", sglang("", "versions: {old: {}} #<\n"), "versions.old", "either python or container"),
    ("version bad name", sglang("", "versions: {Old: {python: p}} #<\n"), "versions.Old", "try 'old'"),
    ("version unused", sglang("", VERSIONS.strip() + " #<\n"), "versions.old", "no configuration runs it"),
    (
        "version unknown",
        sglang("  a: {version: old}\n  b: {version: odl} #<\n", VERSIONS),
        "backends.b.version",
        "did you mean 'old'?",
    ),
    (
        "version unknown in matrix",
        sglang("  matrix: {version: [old, 7] #<\n  }\n", VERSIONS),
        "backends.matrix.version[1]",
        "known: old",
    ),
    (
        "version of a speculation",
        sglang("  a: {version: old}\n", VERSIONS).replace("{spec-type: ngram-simple}", "{version: old} #<"),
        "speculative.copy.version",
        "its backend's version",
    ),
    ("model a number", changed("org/small-model", "7 #<"), "model", "a mapping of keys, not 7"),
    ("model two slashes", changed("org/small-model", "a/b/c #<"), "model.path", "./"),
    ("model no origin", changed(MODEL, "model: #<\n  name: x"), "model", "either path, or package"),
    ("model both origins", changed(MODEL, "model: {path: a/b, package: p==1} #<"), "model", "either"),
    ("model no digest", changed(MODEL, "model: {package: p==1, file: a} #<"), "model", "sha256 is required"),
    ("model no file", changed(MODEL, f"model: {{package: p==1, sha256: {'a' * 64}}} #<"), "model", "file is"),
    ("package not pinned", changed(MODEL, "model: {package: p>=1} #<"), "model.package", "name==version"),
    ("digest short", changed(MODEL, "model: {package: p==1, sha256: abc} #<"), "model.sha256", "64"),
    (
        "file outside",
        changed(MODEL + "\n", PACKAGE.replace("a/b.gguf", "../b.gguf #<")),
        "model.file",
        "inside the package",
    ),
    (
        "digest of a path",
        changed(MODEL, f"model: {{path: a/b, sha256: {'a' * 64}}} #<"),
        "model.sha256",
        "pack",
    ),
    ("revision local", changed(MODEL, "model: {path: ./a, revision: main} #<"), "model.revision", "hub id"),
    ("revision digits", changed(MODEL, "model: {path: a/b, revision: 1234} #<"), "model.revision", "quotes"),
    ("flag with dashes", changed("  threads: 1", "  --threads: 1 #<"), "serve.--threads", "'threads'"),
    ("flag with a blank", changed("  threads: 1", "  thr eads: 1 #<"), "serve.thr eads", "flag's name"),
    ("flag a mapping", changed("  threads: 1", "  threads: {a: 1} #<"), "serve.threads", "text, a number"),
    ("flag without value", changed("  threads: 1", "  threads: #<"), "serve.threads", "has no value"),
    ("flag null", changed("  threads: 1", "  threads: null #<"), "serve.threads", "has no value"),
    ("flag empty list", changed("  threads: 1", "  threads: [] #<"), "serve.threads", "empty list"),
    ("flag nested list", changed("  threads: 1", "  threads: [a, [b]] #<"), "serve.threads[1]", "text and"),
    ("flag twice", changed("  threads: 1", "  threads: 1\n  threads: 2 #<"), "serve.threads", "line 5"),
    ("serve a list", changed("serve:\n  threads: 1\n  ctx-size: 2048", "serve: [a] #<"), "serve", "mapping"),
    (
        "no backends",
        changed("backends:\n" + PLAIN + "  flash: {flash-attn: on}\n", "backends: {} #<\n"),
        "backends",
        "default: {}",
    ),
    ("backend reserved", backends("  race: {} #<\n"), "backends.race", "reserved"),
    ("backend named on", backends("  on: {} #<\n"), "backends.on", "reserved"),
    ("backend bad name", backends("  Flash_On: {} #<\n"), "backends.Flash_On", "try 'flash-on'"),
    ("backend dots", backends("  ..: {} #<\n"), "backends...", "lower-case"),
    ("backend a list", backends("  flash: [a] #<\n"), "backends.flash", "mapping of keys, not a list"),
    ("backend twice", backends("  flash: {}\n  flash: {} #<\n"), "backends.flash", "given twice"),
    ("matrix a scalar", backends("  matrix: {a: on} #<\n"), "backends.matrix.a", "must be a list"),
    ("matrix empty list", backends("  matrix: {a: []} #<\n"), "backends.matrix.a", "at least one"),
    ("matrix value twice", backends("  matrix: {a: [4, '4']} #<\n"), "backends.matrix.a[1]", "twice"),
    ("matrix collision", backends("  matrix: {a: [x y, x-y]} #<\n"), "backends.matrix", "generates the name"),
    ("matrix takes a name", backends("  matrix: {a: [plain]} #<\n"), "backends.matrix", "already has"),
    (
        "matrix huge",
        backends(f"  matrix: {{a: {list(range(101))}, b: {list(range(101))}}} #<\n"),
        "backends.matrix",
        "10,201",
    ),
    ("exclude alone", backends("  exclude: [{a: 1}] #<\n"), "backends.exclude", "no matrix"),
    (
        "exclude unknown flag",
        backends("  matrix: {attention: [x, y]}\n  exclude: [{atention: x}] #<\n"),
        "backends.exclude[0].atention",
        "did you mean 'attention'?",
    ),
    (
        "exclude unknown value",
        backends("  matrix: {a: [triton, y]}\n  exclude: [{a: tritn}] #<\n"),
        "backends.exclude[0].a",
        "did you mean 'triton'?",
    ),
    ("exclude empty", backends("  matrix: {a: [x]}\n  exclude: [{}] #<\n"), "backends.exclude[0]", "every"),
    ("speculation none", changed("  copy:", "  none: {} #<\n  copy:"), "speculative.none", "always runs"),
    (
        "speculation empty",
        changed("speculative:\n  copy: {spec-type: ngram-simple}", "speculative: {} #<"),
        "speculative",
        "at least one",
    ),
    ("base unknown", changed("  copy:", "  on: flsh #<\n  copy:"), "speculative.on", "did you mean 'flash'?"),
    (
        "hypothesis on nobody",
        changed(
            "  reference: plain",
            "  reference: plain\n  hypotheses: [{a: flsh, verdict: faster, b: plain}] #<",
        ),
        "decision.hypotheses[0].a",
        "did you mean 'flash'?",
    ),
    (
        "hypothesis over phases",
        changed(
            "  reference: plain",
            "  reference: plain\n  hypotheses: [{a: copy, verdict: faster, b: plain}] #<",
        ),
        "decision.hypotheses[0].b",
        "'copy' cannot be compared with 'plain'; known: none",
    ),
    (
        "hypothesis without a verdict",
        changed(
            "  reference: plain", "  reference: plain\n  hypotheses: [{a: copy, verdict: quick, b: none}] #<"
        ),
        "decision.hypotheses[0].verdict",
        "'faster', 'slower' or 'equivalent'",
    ),
    ("no prompt", changed(QUESTIONS, "  prompts: [] #<"), "smoke.prompts", "at least one"),
    (
        "prompt twice",
        changed('Name a colour."}', 'What is 2+2?"} #<'),
        "smoke.prompts[1]",
        "same as prompt 0",
    ),
    (
        "ask missing",
        changed('{ask: "Name a colour."}', "{contains: a} #<"),
        "smoke.prompts[1].ask",
        "required",
    ),
    (
        "ask misspelt",
        changed('{ask: "Name a colour."}', "{aks: a} #<"),
        "smoke.prompts[1].aks",
        "mean 'ask'?",
    ),
    (
        "two expectations",
        changed('contains: "4"}', "contains: a, equals: b} #<"),
        "smoke.prompts[0].equals",
        "one expectation",
    ),
    ("bad expression", changed('contains: "4"}', "matches: '('} #<"), "smoke.prompts[0].matches", "regular"),
    (
        "expectation a number",
        changed('contains: "4"}', "contains: 4} #<"),
        "smoke.prompts[0].contains",
        "quotes",
    ),
    (
        "expectation blank",
        changed('contains: "4"}', "contains: ' '} #<"),
        "smoke.prompts[0].contains",
        "blank",
    ),
    (
        "max_tokens zero",
        changed("max_tokens: 8", "max_tokens: 0 #<"),
        "smoke.max_tokens",
        "at least 1, not 0",
    ),
    ("max_tokens text", changed("max_tokens: 8", "max_tokens: '8' #<"), "smoke.max_tokens", "a whole number"),
    ("max_tokens a real", changed("max_tokens: 8", "max_tokens: 8.5 #<"), "smoke.max_tokens", "whole number"),
    ("max_tokens true", changed("max_tokens: 8", "max_tokens: true #<"), "smoke.max_tokens", "whole number"),
    ("seconds zero", changed("seconds: 2", "seconds: 0 #<"), "throughput.seconds", "above 0, not 0"),
    ("seconds text", changed("seconds: 2", "seconds: 2s #<"), "throughput.seconds", "a number, not '2s'"),
    ("seconds infinite", changed("seconds: 2", "seconds: .inf #<"), "throughput.seconds", "a number"),
    ("windows negative", changed("windows: 2", "windows: -1 #<"), "throughput.windows", "at least 1, not -1"),
    (
        "workload name",
        changed("    noise:", "    no ise: #<\n      "),
        "throughput.workloads.no ise",
        "no-ise",
    ),
    (
        "key misspelt",
        free("kind: text, prompts: free.jsonl, output_tokens: 1, concurency: [1]"),
        FREE_KEY + ".concurency",
        "did you mean 'concurrency'?",
    ),
    (
        "kind misspelt",
        free("kind: txt, prompts: free.jsonl, output_tokens: 8, concurrency: [1]"),
        FREE_KEY + ".kind",
        "did you mean 'text'?",
    ),
    ("no prompts", free("kind: text, output_tokens: 8, concurrency: [1]"), FREE_KEY, "needs prompts"),
    (
        "file missing",
        free("kind: text, prompts: no.jsonl, output_tokens: 8, concurrency: [1]"),
        FREE_KEY + ".prompts",
        "no such file",
    ),
    *(
        (
            f"file too long: {what}",
            free(f"kind: text, prompts: {path}, output_tokens: 8, concurrency: [1]"),
            FREE_KEY + ".prompts",
            TOO_LONG,
        )
        for what, path in (("name", LONG), ("folder", f"{LONG}/p.jsonl"), ("path", "a/" * 2500 + "p.jsonl"))
    ),
    (
        "continuations a folder",
        changed("max_tokens: 8", "continuations: . #<"),
        "smoke.continuations",
        "is a folder; name a file in it",
    ),
    (
        "continuations too long",
        changed("max_tokens: 8", f"continuations: {LONG} #<"),
        "smoke.continuations",
        TOO_LONG,
    ),
    (
        "python too long",
        changed("engine: llamacpp", f"engine: llamacpp\npython: {LONG} #<"),
        "python",
        TOO_LONG,
    ),
    ("local model too long", changed(MODEL, f"model: ./{LONG} #<"), "model.path", TOO_LONG),
    ("hub id too long", changed(MODEL, f"model: org/{LONG} #<"), "model.path", "is no hub id"),
    (
        "model file too long",
        changed(MODEL, PACKAGE.replace("b.gguf", f"{LONG} #<")),
        "model.file",
        TOO_LONG,
    ),
    (
        "file a folder",
        free("kind: text, prompts: ., output_tokens: 8, concurrency: [1]"),
        FREE_KEY + ".prompts",
        "is a folder; name a file in it",
    ),
    (
        "text with length",
        free("kind: text, prompts: free.jsonl, prompt_tokens: 3, output_tokens: 8, concurrency: [1]"),
        FREE_KEY + ".prompt_tokens",
        "synthetic",
    ),
    (
        "output too short",
        free("kind: text, prompts: free.jsonl, output_tokens: 1, concurrency: [1]"),
        FREE_KEY + ".output_tokens",
        "at least 2",
    ),
    ("concurrency zero", free(f"{TEXT}, concurrency: [1, 0]"), FREE_KEY + ".concurrency[1]", "at least 1"),
    ("concurrency twice", free(f"{TEXT}, concurrency: [1, 1]"), FREE_KEY + ".concurrency", "twice"),
    ("concurrency scalar", free(f"{TEXT}, concurrency: 1"), FREE_KEY + ".concurrency", "a list, not 1"),
    ("no pace", free(TEXT), FREE_KEY, "give concurrency, rate or both"),
    ("rate zero", free(f"{TEXT}, rate: [0]"), FREE_KEY + ".rate[0]", "above 0"),
    ("rate twice", free(f"{TEXT}, rate: [2, 2]"), FREE_KEY + ".rate", "twice"),
    ("rate scalar", free(f"{TEXT}, rate: 2"), FREE_KEY + ".rate", "a list, not 2"),
    (
        "metric without concurrency",
        metric("{free: 1}, concurrency: 1} #<").replace(FREE, f"free: {{{TEXT}, rate: [2]}}"),
        "decision.metric.concurrency",
        "at rates only",
    ),
    (
        "text with shared prefix",
        free(f"{TEXT}, concurrency: [1], shared_prefix: 0.5"),
        FREE_KEY + ".shared_prefix",
        "synthetic",
    ),
    (
        "natural end of random tokens",
        changed("prompt_tokens: 32,", "prompt_tokens: 32, stop: natural, #<\n     "),
        "throughput.workloads.noise.stop",
        "no natural end",
    ),
    (
        "stop misspelt",
        free(f"{TEXT}, concurrency: [1], stop: naturel"),
        FREE_KEY + ".stop",
        "did you mean 'natural'",
    ),
    (
        "shared prefix above one",
        changed("prompt_tokens: 32,", "prompt_tokens: 32, shared_prefix: 2, #<\n     "),
        "throughput.workloads.noise.shared_prefix",
        "at most 1",
    ),
    (
        "length zero",
        changed("prompt_tokens: 32,", "prompt_tokens: [32, 0], #<\n     "),
        "throughput.workloads.noise.prompt_tokens[1]",
        "at least 1",
    ),
    (
        "endpoint of another engine",
        changed("  seconds: 2", "  endpoint: native #<\n  seconds: 2"),
        "throughput.endpoint",
        "llamacpp has no endpoint 'native'; it has chat, completions",
    ),
    (
        "endpoint misspelt",
        changed("  seconds: 2", "  endpoint: completion #<\n  seconds: 2"),
        "throughput.endpoint",
        "did you mean 'completions'?",
    ),
    ("concurrency empty", free(f"{TEXT}, concurrency: []"), FREE_KEY + ".concurrency", "at least one"),
    (
        "no length",
        changed(NOISE, "noise: {kind: synthetic, output_tokens: 8, concurrency: [1]} #<"),
        "throughput.workloads.noise",
        "needs prompt_tokens",
    ),
    (
        "synthetic with file",
        changed("prompt_tokens: 32,", "prompt_tokens: 32, prompts: a, #<\n     "),
        "throughput.workloads.noise.prompts",
        "kind text",
    ),
    (
        "metric unknown",
        metric("{fre: 1}, concurrency: 1} #<"),
        "decision.metric.workloads.fre",
        "did you mean 'free'?",
    ),
    ("metric empty", metric("{}, concurrency: 1} #<"), "decision.metric.workloads", "at least one"),
    (
        "metric weight zero",
        metric("{free: 0}, concurrency: 1} #<"),
        "decision.metric.workloads.free",
        "above 0",
    ),
    (
        "metric level",
        metric("{free: 1}, concurrency: 2} #<"),
        "decision.metric.concurrency",
        "measured at 1, 4 only",
    ),
    ("metric without a load", metric("{free: 1}} #<"), "decision.metric", "say at which load speed counts"),
    (
        "metric with two loads",
        metric("{free: 1}, concurrency: 1, goodput: {over: concurrency, ttft_seconds: {p50: 1}}} #<"),
        "decision.metric.goodput",
        "one number decides",
    ),
    ("goodput without limits", goodput("over: concurrency"), GOODPUT_KEY, "at least one limit: ttft_seconds"),
    ("goodput over nothing", goodput("ttft_seconds: {p50: 1}"), GOODPUT_KEY + ".over", "is required"),
    (
        "goodput over users",
        goodput("over: users, ttft_seconds: {p50: 1}"),
        GOODPUT_KEY + ".over",
        "concurrency",
    ),
    (
        "limit without percentile",
        goodput("over: concurrency, ttft_seconds: 1"),
        GOODPUT_KEY + ".ttft_seconds",
        "a mapping of keys, not 1",
    ),
    (
        "no percentile",
        goodput("over: concurrency, ttft_seconds: {}"),
        GOODPUT_KEY + ".ttft_seconds",
        "at least one percentile",
    ),
    (
        "percentile that is not kept",
        goodput("over: concurrency, ttft_seconds: {p98: 1}"),
        GOODPUT_KEY + ".ttft_seconds.p98",
        "did you mean 'p9",
    ),
    (
        "limit zero",
        goodput("over: concurrency, tpot_seconds: {p50: 0}"),
        GOODPUT_KEY + ".tpot_seconds.p50",
        "above 0",
    ),
    (
        "goodput at one load",
        goodput("over: concurrency, ttft_seconds: {p50: 1}").replace("{free: 1}", "{noise: 1}"),
        GOODPUT_KEY + ".over",
        "workload 'noise' has 1 as concurrency",
    ),
    (
        "goodput without rates",
        goodput("over: rate, ttft_seconds: {p50: 1}"),
        GOODPUT_KEY + ".over",
        "workload 'free' has none as rate",
    ),
    (
        "percentile of few requests",
        goodput("over: concurrency, ttft_seconds: {p99: 1}"),
        GOODPUT_KEY + ".ttft_seconds.p99",
        "set throughput.min_requests (4) to 100 or more",
    ),
    ("margin one", changed("margin: 0.1", "margin: 1 #<"), "decision.margin", "below 1, not 1"),
    ("margin zero", changed("margin: 0.1", "margin: 0 #<"), "decision.margin", "above 0"),
    ("margin per cent", changed("margin: 0.1", "margin: 10% #<"), "decision.margin", "a number, not '10%'"),
    ("confidence low", changed("confidence: 0.9", "confidence: 0.5 #<"), "decision.confidence", "above 0.5"),
    ("confidence sure", changed("confidence: 0.9", "confidence: 1.0 #<"), "decision.confidence", "below 1"),
    (
        "rounds swapped",
        changed("{min: 2, max: 3}", "{min: 4, max: 3} #<"),
        "decision.rounds",
        "min 4 is above max 3",
    ),
    ("rounds zero", changed("{min: 2, max: 3}", "{min: 0, max: 3} #<"), "decision.rounds.min", "at least 1"),
    (
        "reference unknown",
        changed("reference: plain", "reference: plane #<"),
        "decision.reference",
        "mean 'plain'?",
    ),
    (
        "a rate for days",
        free(f"{TEXT}, rate: [1.0e-5]"),
        f"{FREE_KEY}.rate",
        "take 400,000 s; a day at most",
    ),
    (
        "prompt beyond any context",
        changed("prompt_tokens: 32", "prompt_tokens: 999999999999").replace("[1]}", "[1]} #<"),
        "throughput.workloads.noise.prompt_tokens[0]",
        "at most 10000000",
    ),
    (
        "reference never launched",
        changed("  copy: {spec", "  on: flash\n  copy: {spec").replace(
            "reference: plain", "reference: plain #<"
        ),
        "decision.reference",
        "only 'flash' is launched",
    ),
    (
        "budget without a GPU",
        changed("reference: plain", "budget: {gpu_hours: 1} #<"),
        "decision.budget",
        "needs a GPU",
    ),
    (
        "bound zero",
        changed("reference: plain", "agreement_bound: 0 #<"),
        "decision.agreement_bound",
        "above 0",
    ),
    (
        "sum not a sum",
        changed('contains: "4"}', 'arithmetic: "2 plus 2"} #<'),
        "smoke.prompts[0].arithmetic",
        "is not a sum",
    ),
    (
        "sum without a decimal value",
        changed('contains: "4"}', 'arithmetic: "1/3"} #<'),
        "smoke.prompts[0].arithmetic",
        "no exact decimal",
    ),
    ("asked never", changed("max_tokens: 8", "repeats: 0 #<"), "smoke.repeats", "at least 1"),
    (
        "continuations missing",
        changed("max_tokens: 8", "continuations: no.jsonl #<"),
        "smoke.continuations",
        "no such file",
    ),
    ("gpus negative", changed("{gpus: 0}", "{gpus: -1} #<"), "hosts.gpus", "at least 0"),
    ("bound to no GPU", changed("{gpus: 0}", "{gpus: 0, numa: true} #<"), "hosts.numa", "it has none"),
    ("gpus missing", changed("{gpus: 0}", "{slot_wait_seconds: 1} #<"), "hosts.gpus", "is required"),
    ("merge key", changed("  plain: {}", "  plain:\n    <<: {a: 1} #<"), "backends.plain.<<", "merge keys"),
    ("tag", changed("  threads: 1", "  threads: !!python/name:os.system x #<"), "serve.threads", "the tag"),
    ("key a list", changed("  threads: 1", "  ? [a, b] #<\n  : 1"), "serve.?", "plain text"),
    ("recursive alias", changed("  threads: 1", "  threads: &a [*a] #<"), "serve.threads", "alias"),
]

"""Studies that mean harm or carry an accident: as in broken_studies, ``#<`` marks the line to be named."""

from __future__ import annotations

from broken_studies import FREE, FREE_KEY, MODEL, TEXT, backends, free, metric
from study_samples import RIGHT, changed

THREADS = "  threads: 1"
NAME = "name: sample"


def serve(text: str) -> str:
    return changed(THREADS, f"  {text} #<")


def named(name: str) -> str:
    return changed(NAME, f"name: {name} #<")


def top(text: str) -> str:
    return f"{RIGHT}{text} #<\n"


def workload_named(name: str) -> str:
    return changed(f"    {FREE}", f"    {name}: {{{TEXT}, concurrency: [1]}} #<")


# What would lead out of the results, or look like another name.
NAMES = [
    ("absolute name", named("/etc/passwd"), "name", "try 'etc-passwd'"),
    ("parent", named("'..'"), "name", "lower-case"),
    ("here", named("'.'"), "name", "lower-case"),
    ("parent inside", named("a/../../b"), "name", "lower-case"),
    ("backslash", named(r"'a\..\b'"), "name", "lower-case"),
    ("hidden", named(".snakemake"), "name", "try 'snakemake'"),
    ("leads with a dash", named("'-rf'"), "name", "try 'rf'"),
    ("home", named("'~root'"), "name", "try 'root'"),
    ("empty name", named("''"), "name", "lower-case"),
    ("blank in a name", named("'a b'"), "name", "try 'a-b'"),
    ("line break in a name", named(r'"a\nb"'), "name", r"not 'a\nb'"),
    ("null in a name", named(r'"a\0b"'), "name", r"not 'a\x00b'"),
    ("Cyrillic letter", named("s\u0430mple"), "name", "lower-case"),
    ("full-width letters", named("ｓample"), "name", "lower-case"),
    ("turns the direction of reading", named(r'"a\u202eb"'), "name", r"\u202e"),
    ("invisible", named(r'"a\u200bb"'), "name", r"\u200b"),
    ("another script's digit", named("a\u0661"), "name", "lower-case"),
    ("pattern", named("'*'"), "name", "lower-case"),
    ("Snakemake's wildcard", named("'{wildcards}'"), "name", "try 'wildcards'"),
    ("command in a name", named("'$(touch executed)'"), "name", "try 'touch-executed'"),
    ("backend out of results", backends("  ../../x: {} #<\n"), "backends.../../x", "lower-case"),
    ("backend with a plus", backends("  a+b: {} #<\n"), "backends.a+b", "try 'a-b'"),
    ("backend a wildcard", backends("  '{x}': {} #<\n"), "backends.{x}", "lower-case"),
    ("matrix reserved", backends("  matrix: {a: [race]} #<\n"), "backends.matrix", "reserved"),
    (
        "matrix name too long",
        backends(f"  matrix: {{a: [{'b' * 101}]}} #<\n"),
        "backends.matrix",
        "101 characters",
    ),
    (
        "speculation out of results",
        changed("  copy:", "  ../copy:").replace("ple}", "ple} #<"),
        "speculative.../copy",
        "try",
    ),
    ("workload a path", workload_named("../free"), "throughput.workloads.../free", "lower-case"),
    ("workload a command", workload_named("'$(id)'"), "throughput.workloads.$(id)", "try 'id'"),
]

# What a shell, a process or Snakemake would read as more than text, and what no process can be given.
TEXTS = [
    ("flag a command", serve("$(touch executed): 1"), "serve.$(touch executed)", "flag's name"),
    ("flag ends a command", serve("'threads;id': 1"), "serve.threads;id", "flag's name"),
    ("flag with a value", serve("threads=1: 2"), "serve.threads=1", "flag's name"),
    ("flag a wildcard", serve("'{x}': 1"), "serve.{x}", "flag's name"),
    ("flag with a line break", serve(r'"a\nb": 1'), r"serve.'a\nb'", "flag's name"),
    ("flag empty", serve("'': 1"), "serve.", "flag's name"),
    ("null in a flag", serve(r'chat: "a\0b"'), "serve.chat", "one line of printable text"),
    ("line break in a flag", serve(r'chat: "a\n--host=0.0.0.0"'), "serve.chat", "one line of printable"),
    ("escape in a flag", serve(r'chat: "\e[2J"'), "serve.chat", "one line of printable text"),
    ("null in a list", serve(r'chat: [a, "\0"]'), "serve.chat[1]", "one line of printable text"),
    ("null in a variable", top(r'env: {A: "a\0b"}'), "env.A", "null character"),
    ("variable with a value", top("env: {A=B: c}"), "env.A=B", "environment variable"),
    ("variable with a line break", top(r'env: {"A\nB": c}'), r"env.'A\nB'", "environment variable"),
    ("variable of ours", top("env: {PIVOTBENCH_OWNER: '1'}"), "env.PIVOTBENCH_OWNER", "Pivotbench's own"),
    ("variable a mapping", top("env: {A: {from: B}}"), "env.A", "must be text, not a mapping"),
    ("null in a model", changed(MODEL, r'model: "./a\0b" #<'), "model.name", "one line"),
    ("line break in a model", changed(MODEL, r'model: "a\nb" #<'), "model.name", "one line"),
    ("hub id a command", changed(MODEL, "model: org/$(id) #<"), "model.path", "no hub id"),
    ("hub id a flag", changed(MODEL, "model: --help #<"), "model.path", "no hub id"),
    ("hub id an address", changed(MODEL, "model: https://a/b #<"), "model.path", "no hub id"),
    (
        "package with options",
        changed(MODEL, "model: {package: '-r x==1'} #<"),
        "model.package",
        "name==version",
    ),
    (
        "package an address",
        changed(MODEL, "model: {package: 'a @ git+x'} #<"),
        "model.package",
        "name==version",
    ),
    (
        "null in a prompt file",
        free(r'kind: text, prompts: "a\0b", output_tokens: 8, concurrency: [1]'),
        f"{FREE_KEY}.prompts",
        "path of a file",
    ),
    (
        "prompts a device",
        free("kind: text, prompts: /dev/zero, output_tokens: 8, concurrency: [1]"),
        f"{FREE_KEY}.prompts",
        "no such file",
    ),
    ("interpreter with a null", top(r'python: "a\0b"'), "python", "path of a file"),
]

SECRET = "hf_" + "a1B2" * 8
SECRETS = [
    ("token as a variable", top("env: {HF_TOKEN: not-so-secret}"), "env.HF_TOKEN", "secrets: [HF_TOKEN]"),
    (
        "key as a variable",
        top("env: {OPENAI_API_KEY: abc}"),
        "env.OPENAI_API_KEY",
        "not written into a study",
    ),
    (
        "password as a variable",
        top("env: {proxy_password: abc}"),
        "env.proxy_password",
        "your own environment",
    ),
    ("key as a flag", serve("api-key: abc"), "serve.api-key", "can read a command line"),
    ("key in other letters", serve("API_KEY: abc"), "serve.API_KEY", "can read a command line"),
    (
        "key of one backend",
        backends("  b: {admin-api-key: abc} #<\n"),
        "backends.b.admin-api-key",
        "remove it",
    ),
    (
        "keys as a matrix",
        backends("  matrix: {hf-token: [a, b]} #<\n"),
        "backends.matrix.hf-token",
        "remove it",
    ),
    ("password of a file", serve("ssl-keyfile-password: abc"), "serve.ssl-keyfile-password", "remove it"),
    ("a token anywhere", serve(f"chat: {SECRET}"), "serve.chat", "looks like a key"),
    ("a token in an address", changed(MODEL, f"model: ./{SECRET} #<"), "model", "looks like a key"),
    (
        "a token for a container",
        top("container: {image: a, args: [--env, HF_TOKEN=abc]}").replace("llamacpp", "sglang"),
        "container.args[1]",
        "secrets: [HF_TOKEN]",
    ),
    ("secret with its value", top("secrets: {HF_TOKEN: abc}"), "secrets", "must be a list"),
    ("secret a value", top("secrets: ['a b']"), "secrets[0]", "environment variable"),
    ("secret twice", top("secrets: [A, A]"), "secrets[1]", "listed twice"),
    ("secret written out", top("env: {A: b}\nsecrets: [A]"), "secrets[0]", "written out in env"),
]

# Numbers that are none, or that nobody means; more than anybody reads.
AMOUNTS = [
    ("not a number", changed("seconds: 2", "seconds: .nan #<"), "throughput.seconds", "not '.nan'"),
    ("minus infinity", changed("margin: 0.1", "margin: -.inf #<"), "decision.margin", "must be a number"),
    ("overflows", changed("margin: 0.1", "margin: 1e999 #<"), "decision.margin", "not '1e999'"),
    ("flag not a number", serve("chat: 1e999").replace("1e999", "[{}]"), "serve.chat[0]", "text and numbers"),
    (
        "twenty digits",
        changed("max_tokens: 8", f"max_tokens: {'9' * 20} #<"),
        "smoke.max_tokens",
        "whole number",
    ),
    ("hexadecimal", changed("max_tokens: 8", "max_tokens: 0x10 #<"), "smoke.max_tokens", "not '0x10'"),
    ("sexagesimal", changed("seconds: 2", "seconds: 1:30 #<"), "throughput.seconds", "not '1:30'"),
    ("octal", changed("max_tokens: 8", "max_tokens: 010 #<"), "smoke.max_tokens", "not '010'"),
    ("grouped", changed("max_tokens: 8", "max_tokens: 1_000 #<"), "smoke.max_tokens", "not '1_000'"),
    (
        "a year of seconds",
        changed("seconds: 2", "seconds: 31536000 #<"),
        "throughput.seconds",
        "at most 10000000",
    ),
    (
        "a billion windows",
        changed("windows: 2", "windows: 1000000000 #<"),
        "throughput.windows",
        "at most 1000",
    ),
    (
        "a million users",
        free(f"{TEXT}, concurrency: [1000000]"),
        f"{FREE_KEY}.concurrency[0]",
        "at most 65536",
    ),
    ("a billion a second", free(f"{TEXT}, rate: [1.0e9]"), f"{FREE_KEY}.rate[0]", "at most 100000"),
    (
        "a thousand rounds",
        changed("max: 3", "max: 1000").replace("1000}", "1000} #<"),
        "decision.rounds.max",
        "at most 100",
    ),
    ("a million GPUs", changed("{gpus: 0}", "{gpus: 1000000} #<"), "hosts.gpus", "at most 1024"),
    ("half a GPU", changed("{gpus: 0}", "{gpus: 0.5} #<"), "hosts.gpus", "whole number, not 0.5"),
    (
        "weight infinite",
        metric("{free: .inf}, concurrency: 1} #<"),
        "decision.metric.workloads.free",
        "a number",
    ),
    (
        "nested powers",
        changed('contains: "4"}', 'arithmetic: "9**9**9"} #<'),
        "smoke.prompts[0].arithmetic",
        "exponent",
    ),
    (
        "sum that calls",
        changed('contains: "4"}', 'arithmetic: "open(1)"} #<'),
        "smoke.prompts[0].arithmetic",
        "holds 'open(1)'",
    ),
    (
        "expression without end",
        changed('contains: "4"}', f"matches: '{'(' * 3000}{')' * 3000}'}} #<"),
        "smoke.prompts[0].matches",
        "not a regular expression",
    ),
    (
        "matrix of a billion",
        backends(f"  matrix: {{{', '.join(f'f{n}: {list(range(10))}' for n in range(9))}}} #<\n"),
        "backends.matrix",
        "1,000,000,000 combinations",
    ),
    (
        "matrix beyond counting",
        backends(f"  matrix: {{{', '.join(f'f{n}: [a, b]' for n in range(9000))}}} #<\n"),
        "backends.matrix",
        "more than a quadrillion",
    ),
    (
        "exclusions without end",
        backends(f"  matrix: {{a: [b, c]}}\n  exclude: [{', '.join(['{a: b}'] * 1001)}] #<\n"),
        "backends.exclude",
        "1,001 exclusions",
    ),
    (
        "questions beyond a command line",
        changed('"Name a colour."', f'"{"why " * 20000}"').replace("  prompts:\n", "  prompts: #<\n"),
        "smoke.prompts",
        "KiB of a command line",
    ),
    ("variables beyond a command line", top(f"env: {{A: {'b' * 70000}}}"), "env", "shorten it"),
    ("a key that is a book", top(f"{'z' * 500}: 1"), f"'{'z' * 59}…'", "unknown key"),
]

# YAML that says something else than it seems to, and nesting that is not the study's.
SHAPES = [
    (
        "section a list",
        changed("hosts: {gpus: 0}", "hosts: [gpus] #<"),
        "hosts",
        "mapping of keys, not a list",
    ),
    ("section a text", changed("hosts: {gpus: 0}", "hosts: none #<"), "hosts", "mapping of keys, not 'none'"),
    ("section empty", changed("hosts: {gpus: 0}", "hosts: #<"), "hosts", "has no value"),
    (
        "key too deep",
        changed("hosts: {gpus: 0}", "hosts: {gpus: {count: 1}} #<"),
        "hosts.gpus",
        "not a mapping",
    ),
    ("key too high", top("margin: 0.1"), "margin", "unknown key"),
    (
        "section in a section",
        changed("hosts: {gpus: 0}", "  hosts: {gpus: 0} #<"),
        "decision.hosts",
        "unknown key",
    ),
    ("alias of the whole", f"&a\n{RIGHT}more: *a #<\n", "more.more", "alias hold itself"),
    ("alias into itself", serve("threads: &a {b: *a}"), "serve.threads", "alias hold itself"),
    ("merge of an alias", backends("  base: &a {}\n  more: {<<: *a} #<\n"), "backends.more.<<", "merge keys"),
    (
        "key an alias",
        f"x: &a engine\n{RIGHT}".replace("engine: llamacpp", "*a : llamacpp").replace(
            "x: &a engine", "x: &a engine #<"
        ),
        "x",
        "unknown key",
    ),
    ("binary", serve("chat: !!binary aGk="), "serve.chat", "tag '!!binary'"),
    ("set", serve("chat: !!set {a, b}"), "serve.chat", "tag '!!set'"),
    ("object", serve("chat: !!python/object/apply:os.system [id]"), "serve.chat", "is not supported"),
    ("include", serve("chat: !include /etc/passwd"), "serve.chat", "tag '!include'"),
    (
        "nested mapping as text",
        changed("model: org/small-model", "model: [org, small] #<"),
        "model",
        "not a list",
    ),
    ("twenty levels", serve(f"chat: {'[' * 25}{']' * 25}"), "serve.chat", "nested too deeply"),
]

HOSTILE = [*NAMES, *TEXTS, *SECRETS, *AMOUNTS, *SHAPES]

GOOD = b'{"id": "a", "prompt": "Say a."}\n'
# What is wrong, the prompt file, the line named (None: the file alone), words of the message.
PROMPT_FILES = [
    ("empty", b"", 1, "holds no prompt"),
    ("blank lines", b"\n\n \n", 1, "holds no prompt"),
    ("not UTF-8", GOOD + b'{"id": "b", "prompt": "\xff"}\n', 2, "not UTF-8"),
    ("UTF-16", "\ufeffa".encode("utf-16"), 1, "not UTF-8"),
    ("not JSON", GOOD + b"Say b.\n", 2, "not valid JSON"),
    ("a list", b"[1]\n", 1, "not an object"),
    ("a whole file of JSON", b'[\n{"id": "a"}\n]\n', 1, "not valid JSON"),
    ("two objects", b'{"id": "a", "prompt": "b"} {"id": "c"}\n', 1, "not valid JSON"),
    ("not a number", b'{"id": NaN, "prompt": "a"}\n', 1, "id: must be text"),
    ("null byte", b'{"id": "a", "prompt": "\x00"}\n', 1, "not valid JSON"),
    ("half a character", rb'{"id": "a", "prompt": "\ud83d"}' + b"\n", 1, "half a character"),
    ("deep", b"[" * 100_000, 1, "not valid JSON"),
    ("key twice", b'{"id": "a", "id": "b", "prompt": "c"}\n', 1, "'id': given twice"),
    ("unknown key", b'{"id": "a", "promt": "b"}\n', 1, "did you mean 'prompt'?"),
    ("no id", b'{"prompt": "b"}\n', 1, "id: must be text"),
    ("id a number", b'{"id": 1, "prompt": "b"}\n', 1, "id: must be text"),
    ("id twice", GOOD + b'{"id": "a", "prompt": "c"}\n', 2, "the same id as line 1"),
    ("prompt twice", GOOD + b'{"id": "b", "prompt": "Say a."}\n', 2, "the same prompt as line 1"),
    ("nothing to say", b'{"id": "a"}\n', 1, "give either prompt"),
    ("blank prompt", b'{"id": "a", "prompt": " "}\n', 1, "prompt: must be text"),
    ("unknown role", b'{"id": "a", "messages": [{"role": "root", "content": "b"}]}\n', 1, "not 'root'"),
    ("empty conversation", b'{"id": "a", "messages": []}\n', 1, "at least one message"),
    ("turn a number", b'{"id": "a", "turns": [1]}\n', 1, "each must be text"),
]

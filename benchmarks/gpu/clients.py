"""Our client and SGLang's against one real server: the same synthetic load, in turns.

    PYTHONPATH=scripts:tests python -m benchmarks.gpu.clients http://127.0.0.1:30000 /models/Qwen3-8B-shape \
        --python /opt/sglang/bin/python --out clients.json

The server is started by hand and serves nothing else meanwhile. Every turn has three rows, each begun when
it is idle. ``windows`` is what the throughput stage reports: the mean of windows in the steady state.
``whole`` is our client again with a fixed number of requests, all tokens over all the time, as ``serving``,
SGLang's own client, defines it. So ``whole`` against ``serving`` compares clients, ``windows`` against
``whole`` definitions.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean, stdev

from ground_truth.truth import load, reported_figures
from pivotbench.client import LoadPlan, measure
from pivotbench.client.idle import await_idle
from pivotbench.engines.counters import read_metrics
from pivotbench.engines.sglang import SGLANG

WINDOWS, WHOLE, SERVING = "windows", "whole", "serving"
DIALECT = "sglang-generate"
WINDOW_COUNT = 4
PROMPT_TOKENS, REQUESTS = "sglang:prompt_tokens_total", "sglang:num_requests_total"
# Loads whose prompts differ by more are not the same load; a server may put one token of its own before each.
LENGTH_TOLERANCE = 0.01


@dataclass(frozen=True)
class Load:
    """So many requests over so many streams, of exact lengths in tokens."""

    streams: int
    requests: int
    prompt_tokens: int = 256
    output_tokens: int = 128


@dataclass(frozen=True)
class Row:
    """What one client reported of one load; latencies in milliseconds, means over all requests.

    ``prompt_tokens`` is the mean length of a prompt by the server's own count, None where it tells none.
    """

    client: str
    turn: int
    streams: int
    completed: int
    tok_s: float
    ttft_mean_ms: float
    tpot_mean_ms: float
    itl_mean_ms: float
    prompt_tokens: float | None = None


def counted(url: str, measured: Callable[[], Row]) -> Row:
    """Return a row that was measured from an idle server on, with the server's own count of its prompts."""
    before = _counts(url)
    row = measured()
    tokens, requests = (now - then for now, then in zip(_counts(url), before, strict=True))
    return replace(row, prompt_tokens=tokens / requests if requests else None)


def _counts(url: str) -> tuple[float, float]:
    """Return the prompt tokens and requests that an idle server has counted, 0 of what it does not count."""
    if held := await_idle(partial(SGLANG.requests_held, url)).held:
        raise SystemExit(f"error: {url} is still at work on {held} requests; let it serve nothing else")
    told = read_metrics(url) or {}
    return told.get(PROMPT_TOKENS, 0.0), told.get(REQUESTS, 0.0)


def windows(url: str, turn: int, sent: Load, seconds: float) -> Row:
    """Return what the throughput stage would report of this load."""
    workload = {
        "kind": "synthetic",
        "prompt_tokens": [sent.prompt_tokens],
        "output_tokens": sent.output_tokens,
        "concurrency": [sent.streams],
    }
    plan = LoadPlan.from_json(
        {
            "seconds": seconds,
            "windows": WINDOW_COUNT,
            "min_requests": sent.requests,
            "workloads": {"synthetic": workload},
        },
        seed=f"turn {turn}",
    )
    outcome = measure(url, [DIALECT], served_name(url), plan, alive=lambda: True, progress=lambda _: None)
    if outcome.reason is not None:
        raise SystemExit(f"error: our client at {url}: {outcome.reason.message}")
    [run] = outcome.runs
    return Row(
        WINDOWS,
        turn,
        sent.streams,
        run["requests"]["completed"],
        fmean(window["output_tok_s"] for window in run["windows"]),
        1000 * run["ttft_seconds"]["mean"],
        1000 * run["tpot_seconds"]["mean"],
        1000 * run["itl_seconds"]["mean"],
    )


def whole(url: str, turn: int, sent: Load, vocabulary: range) -> Row:
    """Return our client's figures of a fixed number of requests: all tokens over all the time."""
    chance = random.Random(turn)
    prompts = [tuple(chance.choices(vocabulary, k=sent.prompt_tokens)) for _ in range(sent.requests)]
    records = load(
        url,
        DIALECT,
        streams=sent.streams,
        requests=sent.requests,
        tokens=sent.output_tokens,
        prompts=prompts,
    ).records
    ok = [record for record in records if record.status == "ok"]
    if not ok:
        raise SystemExit(f"error: our client at {url}: no request of {sent.requests} was answered")
    figures = reported_figures(ok)
    return Row(
        WHOLE,
        turn,
        sent.streams,
        len(ok),
        figures.throughput_tok_s,
        figures.ttft_mean_ms,
        figures.tpot_mean_ms,
        figures.itl_mean_ms,
    )


# SGLang's client, started once: importing it costs half a minute. Each line it reads is an argument list.
_RUN_EACH = """
import json, sys
from sglang.benchmark.serving import cli_main
for line in sys.stdin:
    sys.argv = ["serving", *json.loads(line)]
    cli_main()
    print("DONE", flush=True)
"""


@contextmanager
def sglang_client(python: str, log: Path) -> Iterator[subprocess.Popen[str]]:
    """Give a process that runs ``sglang.benchmark.serving`` for each line sent; it needs ``datasets``."""
    with log.open("w", encoding="utf-8") as errors:
        command = [python, "-c", _RUN_EACH]
        try:
            pipe = subprocess.PIPE
            process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=errors, text=True)
        except OSError as error:
            raise SystemExit(f"error: --python {python}: {error}") from error
        with process:
            yield process


def serving(url: str, turn: int, sent: Load, model: str, client: subprocess.Popen[str]) -> Row:
    """Return what ``sglang.benchmark.serving`` reports of a fixed number of requests."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "reported.jsonl"
        options = {
            "--backend": "sglang",
            "--base-url": url,
            "--model": model,
            "--tokenizer": model,
            "--dataset-name": "random-ids",
            "--random-input-len": sent.prompt_tokens,
            "--random-output-len": sent.output_tokens,
            "--random-range-ratio": 1,
            "--num-prompts": sent.requests,
            "--max-concurrency": sent.streams,
            "--warmup-requests": 4,
            "--seed": turn,
            "--output-file": file,
        }
        flags = [str(text) for option in options.items() for text in option]
        assert client.stdin is not None and client.stdout is not None
        with suppress(BrokenPipeError):  # it has ended: no line comes back either
            # As words, random ids would be as many tokens as the tokenizer makes of them.
            print(json.dumps([*flags, "--tokenize-prompt", "--disable-tqdm"]), file=client.stdin, flush=True)
        if not any(line.strip() == "DONE" for line in client.stdout) or not file.exists():
            raise SystemExit("error: sglang.benchmark.serving failed; the log beside --out says why")
        said = json.loads(file.read_text().splitlines()[-1])
    return Row(
        SERVING,
        turn,
        sent.streams,
        said["completed"],
        said["output_throughput"],
        said["mean_ttft_ms"],
        said["mean_tpot_ms"],
        said["mean_itl_ms"],
    )


def pairs(rows: Iterable[Row], of: str, to: str) -> dict[int, list[tuple[Row, Row]]]:
    """Return the rows of two clients side by side, a pair a turn, by number of streams."""
    known = {(row.client, row.streams, row.turn): row for row in rows}
    found: dict[int, list[tuple[Row, Row]]] = {}
    for (client, streams, turn), row in sorted(known.items(), key=lambda item: item[0]):
        if client == of and (to, streams, turn) in known:
            found.setdefault(streams, []).append((row, known[to, streams, turn]))
    return found


def lines(rows: Sequence[Row]) -> Iterator[str]:
    """Yield each pair's ratios of output tok/s in words: the mean, and how far turns lie from each other.

    Of loads that were not of equal length there is none.
    """
    for of, to in ((WHOLE, SERVING), (WINDOWS, WHOLE), (WINDOWS, SERVING)):
        for streams, found in pairs(rows, of, to).items():
            yield f"{of} / {to}, {streams} streams: {_unequal(found) or _ratio(found)}"


def _unequal(found: Iterable[tuple[Row, Row]]) -> str | None:
    for ours, theirs in found:
        a, b = ours.prompt_tokens, theirs.prompt_tokens
        if a and b and abs(a / b - 1) > LENGTH_TOLERANCE:
            return f"not of equal length, {a:.1f} and {b:.1f} prompt tokens a request in turn {ours.turn}"
    return None


def _ratio(found: Sequence[tuple[Row, Row]]) -> str:
    ratios = [ours.tok_s / theirs.tok_s for ours, theirs in found]
    spread = f"sd {stdev(ratios):.4f}" if len(ratios) > 1 else "one turn settles nothing"
    told = all(row.prompt_tokens for pair in found for row in pair)
    return f"{fmean(ratios):.4f} ({len(ratios)} turns, {spread}{'' if told else '; prompt lengths not told'})"


def served_name(url: str) -> str:
    """Return the name of the model that the server serves; exits where it does not say."""
    try:
        with urllib.request.urlopen(f"{url}/v1/models", timeout=10) as answer:
            return str(json.load(answer)["data"][0]["id"])
    except (OSError, ValueError, LookupError) as error:
        raise SystemExit(f"error: {url}/v1/models: {error}; start the server first") from error


def main() -> None:
    """Measure in turns, write all rows after each, print the ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("url", help="the running server, e.g. http://127.0.0.1:30000")
    parser.add_argument("model", help="the folder it serves, for the tokenizer of SGLang's client")
    parser.add_argument("--python", default="/opt/sglang/bin/python", help="SGLang's (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("clients.json"), help="all rows (%(default)s)")
    parser.add_argument("--turns", type=int, default=5, help="turns of all three (%(default)s)")
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 16], help="(%(default)s)")
    parser.add_argument("--requests", type=int, default=16, help="requests a stream (%(default)s)")
    parser.add_argument("--seconds", type=float, default=6.0, help="least measured time of windows")
    parser.add_argument("--vocabulary", type=int, default=32000, help="random ids lie below (%(default)s)")
    arguments = parser.parse_args()
    url, rows = arguments.url.rstrip("/"), []
    with sglang_client(arguments.python, arguments.out.with_suffix(".log")) as client:
        for turn in range(arguments.turns):
            for streams in arguments.streams:
                sent = Load(streams, streams * arguments.requests)
                asked = (url, turn, sent)
                rows += [
                    counted(url, partial(windows, *asked, arguments.seconds)),
                    counted(url, partial(whole, *asked, range(100, arguments.vocabulary))),
                    counted(url, partial(serving, *asked, arguments.model, client)),
                ]
                arguments.out.write_text(json.dumps([asdict(row) for row in rows], indent=1))
                for row in rows[-3:]:
                    print(row, flush=True)
    print("\n".join(lines(rows)))


if __name__ == "__main__":
    main()

"""Our client and SGLang's two against one server in one run: what each can carry, what each gets wrong.

Ends with one line of figures; exits 1 where a target is missed. README.md beside this file says more.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from benchmarks.client.clients import CLIENTS, OURS, PYTHON, Load, Outcome, run

from ground_truth.server import Schedule

REPEATS = 3

# All tokens at once, as fast as the client takes them: the server writes many in one call and waits.
FLOOD = Schedule(ttft_seconds=0.01, gap_seconds=0.0)
FLOODS = {
    "chat": Load("openai-chat", streams=16, requests=96, tokens=1000, schedule=FLOOD),
    "generate": Load("sglang-generate", streams=16, requests=96, tokens=500, schedule=FLOOD),
}
# A token on every stream each GAP_SECONDS, on more and more streams.
GAP_SECONDS = 0.05
LADDER = (64, 128, 256, 512, 1024, 1536, 2048)
LADDER_TOKENS = 120
# A client that keeps up is done when the server is, save a tenth: some need that to open their connections.
KEEPS_UP = 0.9
SERVER_LATE = 1.1

ACCURACY = {
    "16 streams, TTFT 200 ms, gap 20 ms": Load("openai-chat", 16, 64, 100, Schedule(0.2, 0.02)),
    "256 streams, TTFT 300 ms, gap 100 ms": Load("openai-chat", 256, 256, 40, Schedule(0.3, 0.1)),
    "2,048 streams, TTFT 2 s, gap 1 s": Load("openai-chat", 2048, 2048, 6, Schedule(2.0, 1.0)),
}
ERRORS = ("TTFT ms", "ITL ms", "TPOT ms", "tok/s %")

CEILING_TARGET = 2.0
ERROR_TARGET = 1 / 3
# An error below this is none: it is less than the noise of three repetitions.
NOTHING_MS = 0.05
NOTHING_PERCENT = 0.05


@dataclass(frozen=True)
class Ceiling:
    """What one core carries: tokens a processor second, and the reverse."""

    tokens_per_cpu_second: float
    cpu_ms_per_1000_tokens: float

    @classmethod
    def of(cls, outcomes: list[Outcome], tokens: int) -> Ceiling:
        rate = median(outcome.completed * tokens / outcome.cpu_seconds for outcome in outcomes)
        return cls(rate, 1e6 / rate)


def errors(outcome: Outcome) -> tuple[float, ...]:
    """Return reported minus true, in the order of ERRORS."""
    reported, truth = outcome.reported, outcome.truth
    return (
        reported.ttft_mean_ms - truth.ttft_mean_ms,
        reported.itl_mean_ms - truth.itl_mean_ms,
        reported.tpot_mean_ms - truth.tpot_mean_ms,
        100 * (reported.throughput_tok_s / truth.throughput_tok_s - 1),
    )


def middle(runs: list[tuple[float, ...]]) -> tuple[float, ...]:
    """Return each error's median by size."""
    return tuple(sorted(values, key=abs)[len(values) // 2] for values in zip(*runs, strict=True))


def interleaved(measure: Callable[[str], Outcome]) -> dict[str, list[Outcome]]:
    """Return each client's outcomes, taken in turns so that none has the quiet minute for itself."""
    outcomes: dict[str, list[Outcome]] = {client: [] for client in CLIENTS}
    for _ in range(REPEATS):
        for client in CLIENTS:
            outcomes[client].append(measure(client))
    return outcomes


def row(name: str, *cells: str) -> None:
    print(f"{name:<18}" + "".join(f"{cell:>18}" for cell in cells), flush=True)


def floods() -> dict[str, dict[str, Ceiling]]:
    """Measure and print what a core carries when a client never has to wait."""
    ceilings: dict[str, dict[str, Ceiling]] = {}
    for name, load in FLOODS.items():
        print(f"\nFlood of /{name}: {load.streams} streams, {load.requests} answers of {load.tokens} tokens")
        row("client", "tok/CPU s", "CPU ms/1000 tok", "tok/s", "of a core")
        outcomes = interleaved(lambda client, load=load: run(client, load))
        ceilings[name] = {client: Ceiling.of(runs, load.tokens) for client, runs in outcomes.items()}
        for client, runs in outcomes.items():
            ceiling = ceilings[name][client]
            row(
                client,
                f"{ceiling.tokens_per_cpu_second:,.0f}",
                f"{ceiling.cpu_ms_per_1000_tokens:.2f}",
                f"{median(r.reported.throughput_tok_s for r in runs):,.0f}",
                f"{100 * median(r.busy for r in runs):.0f} %",
            )
    return ceilings


def keeps_up(client: str, load: Load) -> tuple[Outcome, str]:
    """Return a client's outcome under a load, and why it or the server did not keep up, at the second try."""
    lost = ""
    for _ in range(2):
        outcome = run(client, load)
        share = outcome.true_seconds / outcome.seconds
        if outcome.truth.tpot_mean_ms > SERVER_LATE * 1000 * GAP_SECONDS:
            lost = f"{load.streams:,}: server late"
        elif share < KEEPS_UP or outcome.completed < load.streams:
            lost = f"{load.streams:,}: {100 * share:.0f} %"
        else:
            return outcome, ""
    return outcome, lost


def ladders() -> dict[str, tuple[int, float]]:
    """Find and print the most streams that each client reads as fast as they are sent."""
    print(f"\nStreams: a token each {1000 * GAP_SECONDS:g} ms on more and more chat streams")
    row("client", "streams", "tok/s", "CPU ms/1000 tok", "next rung")
    kept: dict[str, tuple[int, float]] = {}
    for client in CLIENTS:
        kept[client], cpu, lost = (0, 0.0), 0.0, ""
        for streams in LADDER:
            load = Load("openai-chat", streams, streams, LADDER_TOKENS, Schedule(0.5, GAP_SECONDS))
            outcome, lost = keeps_up(client, load)
            if lost:
                break
            kept[client] = streams, outcome.truth.throughput_tok_s
            cpu = 1e6 * outcome.cpu_seconds / (streams * LADDER_TOKENS)
        streams, rate = kept[client]
        row(client, f"{streams:,}", f"{rate:,.0f}", f"{cpu:.2f}", lost or "not tried")
    return kept


def accuracies() -> dict[str, dict[str, tuple[float, ...]]]:
    """Measure and print what each client reports against what was true."""
    found: dict[str, dict[str, tuple[float, ...]]] = {}
    for name, load in ACCURACY.items():
        print(f"\nReported minus true, {name}")
        row("client", *ERRORS)
        outcomes = interleaved(lambda client, load=load: run(client, load))
        found[name] = {client: middle([errors(r) for r in runs]) for client, runs in outcomes.items()}
        for client, values in found[name].items():
            row(client, *(f"{value:+.4f}" for value in values))
    return found


def missed(
    ceilings: dict[str, dict[str, Ceiling]], accuracy: dict[str, dict[str, tuple[float, ...]]]
) -> list[str]:
    """Return the targets that are missed, in words."""
    found = [
        f"the ceiling of /{name} is {ratio:.2f} of the Python client's, not {CEILING_TARGET:g}"
        for name, by_client in ceilings.items()
        if (ratio := _ratio(by_client)) < CEILING_TARGET
    ]
    for name, errors_of in accuracy.items():
        for what, ours, theirs in zip(ERRORS, errors_of[OURS], errors_of[PYTHON], strict=True):
            nothing = NOTHING_PERCENT if what.endswith("%") else NOTHING_MS
            if not abs(ours) <= max(ERROR_TARGET * abs(theirs), nothing):
                found.append(f"{what} at {name}: {ours:+.3f}, the Python client's {theirs:+.3f}")
    return found


def _ratio(by_client: dict[str, Ceiling]) -> float:
    return by_client[OURS].tokens_per_cpu_second / by_client[PYTHON].tokens_per_cpu_second


def main() -> int:
    """Print the tables and the last line; return the exit status."""
    if len(os.sched_getaffinity(0)) < 2:
        print("error: two cores are needed, one for the server and one for the client", file=sys.stderr)
        return 2
    ceilings, streams, accuracy = floods(), ladders(), accuracies()
    failures = missed(ceilings, accuracy)
    for failure in failures:
        print(f"missed: {failure}")
    ratios = ", ".join(f"/{name} {_ratio(by_client):.2f}x" for name, by_client in ceilings.items())
    worst = max(abs(values[OURS][0]) for values in accuracy.values())
    theirs = max(abs(values[PYTHON][0]) for values in accuracy.values())
    print(
        f"\nbench-client: {'MISSED' if failures else 'met'}; "
        f"tokens a core against the Python client {ratios}; "
        f"streams {streams[OURS][0]:,} against {streams[PYTHON][0]:,}; "
        f"largest TTFT error {worst:.3f} ms against {theirs:.3f} ms"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

"""Simulate campaigns through the real rules and hold them to the targets: `make bench-decision`.

Exits with 1 where a target is missed, and where a rule that always says undecided would miss none.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor

from benchmarks.decision.law import COMMITTED, LAWS, SPREADS, world
from benchmarks.decision.methods import METHODS, Score, full, never
from benchmarks.decision.targets import Tally, cost_share, misses, percent, tallied

POWER_ROUNDS = (2, 3, 4, 5, 7, 10)
Place = tuple[str, str]  # a law and a spread


def main() -> int:
    """Run everything, print the tables, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--campaigns", type=int, default=200, help="campaigns for each law, spread and method"
    )
    asked = parser.parse_args()
    begun = time.monotonic()
    places = [(law, spread) for law in LAWS for spread in SPREADS]
    jobs = [
        (method, law, spread, number)
        for law, spread in places
        for method in METHODS
        for number in range(asked.campaigns)
    ]
    powers = [
        (rounds, spread, number)
        for spread in range(len(SPREADS))
        for rounds in POWER_ROUNDS
        for number in range(asked.campaigns // 4)
    ]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        scores = list(pool.map(_play, jobs, chunksize=20))
        power = list(pool.map(_power, powers, chunksize=20))
    by_method: dict[str, dict[Place, list[Score]]] = {}
    for (method, law, spread, _), score in zip(jobs, scores, strict=True):
        by_method.setdefault(method, {}).setdefault((law, str(spread)), []).append(score)
    ours = by_method["pivotbench"]
    by_method["always undecided"] = {at: [never(s) for s in found] for at, found in ours.items()}
    tallies = {m: {at: tallied(found) for at, found in by.items()} for m, by in by_method.items()}
    sweeps = {at: tally.gpu_seconds for at, tally in tallies["five rounds for all, Welch's t"].items()}
    for method, by in tallies.items():
        print(f"\n{method}\n\n{_table(by, sweeps)}")
    print("\npower by rounds for all, judged once: equals called so / a 3 % gap found\n")
    print(_powers(powers, power))
    missed = misses(tallies["pivotbench"], sweeps)
    if not misses(tallies["always undecided"], sweeps):
        missed.append("a rule that always says undecided would pass")
    print("\n" + "\n".join(f"missed: {line}" for line in missed) if missed else "\nevery target is met")
    print(_line(tallies["pivotbench"], sweeps, len(missed), time.monotonic() - begun))
    return 1 if missed else 0


def _play(job: tuple[str, str, object, int]) -> Score:
    method, law, spread, number = job
    return METHODS[method](world(law, spread, number))


def _power(job: tuple[int, int, int]) -> Score:
    rounds, spread, number = job
    return full(world("known", SPREADS[spread], number), rounds)


def _table(by: Mapping[Place, Tally], sweeps: Mapping[Place, float]) -> str:
    lines = [
        "| law | sd between / within launches, % | false | within the margin | within 1 % | GPU-seconds "
        "| undecided | equals | 3 % gap |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for at, tally in by.items():
        known = at[0] == "known"
        lines.append(
            f"| {at[0]} | {at[1]} | {percent(tally.false)} "
            f"| {percent(tally.within_margin)} | {percent(tally.within_one)} "
            f"| {tally.gpu_seconds / sweeps[at]:.2f} | {percent(tally.undecided, 0)} "
            f"| {percent(tally.equal) if known else ''} | {percent(tally.gap) if known else ''} |"
        )
    return "\n".join(lines)


def _powers(jobs: Sequence[tuple[int, int, int]], scores: Sequence[Score]) -> str:
    found: dict[tuple[int, int], list[Score]] = {}
    for (rounds, spread, _), score in zip(jobs, scores, strict=True):
        found.setdefault((spread, rounds), []).append(score)
    heads = ["sd, %", *(f"{rounds} rounds" for rounds in POWER_ROUNDS)]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for index, spread in enumerate(SPREADS):
        tallies = [tallied(found[index, rounds]) for rounds in POWER_ROUNDS]
        lines.append(
            f"| {spread} | {' | '.join(f'{percent(t.equal, 0)} / {percent(t.gap, 0)}' for t in tallies)} |"
        )
    return "\n".join(lines)


def _line(by: Mapping[Place, Tally], sweeps: Mapping[Place, float], missed: int, seconds: float) -> str:
    worst = max(t.false for t in by.values())
    least = min(t.within_margin for at, t in by.items() if at[0] in COMMITTED)
    power = by["known", str(SPREADS[0])]
    return (
        f"decision: {sum(t.campaigns for t in by.values())} campaigns in {seconds:.0f} s, "
        f"false verdict in at most {percent(worst)}, within the margin in at least {percent(least)}, "
        f"equals {percent(power.equal)}, 3 % gap {percent(power.gap)}, "
        f"GPU-seconds {cost_share(by, sweeps):.3f} of five rounds for all, targets missed: {missed}"
    )


if __name__ == "__main__":
    sys.exit(main())

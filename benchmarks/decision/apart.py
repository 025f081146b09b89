"""How often a comparison of two folders errs where nothing changed: `python -m benchmarks.decision.apart`.

Two folders of the same configurations are drawn, each with rounds of its own, and judged by the code that
judges real ones. A family errs where any pair ends as faster or slower though all are as they were, or as
equivalent though each is just outside the margin. Beside it: the same launches judged by a t-test that counts
each in full.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace

from pivotbench.changes.series import Series, apart, series
from pivotbench.decision.comparison import settle
from pivotbench.decision.spending import Risk
from pivotbench.decision.statistics import pooled_noise

TRIALS = 2000
CONFIDENCE = 0.95
LAUNCH_SD = 0.01
MARGIN = 0.02
# Launches by configuration; in a race most stop after two rounds.
SHAPES = {
    "2 in 2 rounds": [2] * 2,
    "4 in 2 rounds": [2] * 4,
    "4 in 3 rounds": [3] * 4,
    "6 in 5 rounds": [5] * 6,
    "12, of which 3 in 5 rounds": [5] * 3 + [2] * 9,
}


def folder(rng: random.Random, launches: list[int], round_sd: float, log_ratio: float = 0.0) -> Series:
    """Draw one folder's launches of a phase."""
    rounds = [rng.gauss(0, round_sd) for _ in range(max(launches))]
    return series(
        {
            f"c{n}": {r + 1: math.exp(log_ratio + rounds[r] + rng.gauss(0, LAUNCH_SD)) for r in range(count)}
            for n, count in enumerate(launches)
        }
    )


def verdicts(new: Series, old: Series) -> set[str]:
    """Judge every configuration."""
    risk = Risk.against_baseline(CONFIDENCE, len(new.used), 2, 2)
    return {settle((n, n), *apart(new, n, old, n), risk, MARGIN).verdict for n in new.used}


def counted_in_full(each: Series) -> Series:
    """Take every launch for an observation of its own."""
    return replace(each, noise=pooled_noise(each.used.values()))


def main() -> None:
    """Print the table and the worst figures."""
    worst = [0.0, 0.0, 0.0]
    print("| configurations | sd of rounds / launches | false change | false equality | each in full |")
    print("|---|---|---|---|---|")
    for shape, launches in SHAPES.items():
        for ratio in (0, 1, 3):
            rng = random.Random(f"{shape}{ratio}")
            errors = [0, 0, 0]
            for _ in range(TRIALS):
                old, new = (folder(rng, launches, ratio * LAUNCH_SD) for _ in range(2))
                errors[0] += bool(verdicts(new, old) & {"faster", "slower"})
                errors[2] += bool(verdicts(counted_in_full(new), counted_in_full(old)) & {"faster", "slower"})
                outside = folder(rng, launches, ratio * LAUNCH_SD, 1.0001 * math.log1p(MARGIN))
                errors[1] += "equivalent" in verdicts(outside, old)
            shares = [count / TRIALS for count in errors]
            worst = [max(pair) for pair in zip(worst, shares, strict=True)]
            figures = " | ".join(f"{100 * share:.1f} %" for share in shares)
            print(f"| {shape} | {ratio} | {figures} |", flush=True)
    change, equality, full = (f"{100 * share:.1f} %" for share in worst)
    print(f"apart: false change in at most {change}, false equality {equality}, each in full {full}")


if __name__ == "__main__":
    main()

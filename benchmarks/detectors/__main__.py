"""Judge the corpus by the detectors and print a table: `make bench-detectors`.

Exits with 1 where a target is missed, by the families that no threshold was chosen on: 0.99 of the garbage
found, at most 0.005 of the good answers suspected, none of them called bad, and none called bad of what the
model itself writes when it loops.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from benchmarks.detectors.corpus import corpus
from benchmarks.detectors.judging import Tally, misjudged, tally
from benchmarks.detectors.samples import Family, Label, Part
from scipy.stats import beta

RECALL_LEAST = 0.99
FALSE_ALARMS_MOST = 0.005


def interval(count: int, total: int) -> tuple[float, float]:
    """Return the 95 % interval of a share (Clopper and Pearson 1934)."""
    low = beta.ppf(0.025, count, total - count + 1) if count else 0.0
    high = beta.ppf(0.975, count + 1, total - count) if count < total else 1.0
    return float(low), float(high)


def total(tallies: Sequence[tuple[Family, Tally]], label: Label, part: Part) -> Tally:
    """Return the sum over the families of a label in one part."""
    return sum((t for f, t in tallies if (f.label, f.part) == (label, part)), Tally())


def shares(name: str, counted: Tally) -> str:
    """Return one line: how many, what share, and its interval."""
    low, high = interval(counted.alarms, counted.samples)
    return (
        f"{name}: {counted.alarms} of {counted.samples} = {counted.share:.2%} "
        f"(95 % interval {low:.2%} to {high:.2%}), {counted.bad} bad"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--show", action="store_true", help="print what was missed and what was a false alarm"
    )
    arguments = parser.parse_args()
    families = corpus()
    tallies = [(family, tally(family)) for family in families]

    print(f"{'label':<8} {'part':<7} {'family':<56} {'n':>4} {'suspect':>7} {'bad':>4} {'alarms':>7}")
    for family, t in sorted(tallies, key=lambda counted: (counted[0].label, counted[0].part)):
        print(
            f"{family.label:<8} {family.part:<7} {family.name:<56} {t.samples:>4} {t.suspect:>7} {t.bad:>4} "
            f"{t.share:>7.1%}"
        )
    if arguments.show:
        for family in families:
            if family.label != "limit":
                show(family)

    garbage, good = total(tallies, "garbage", "report"), total(tallies, "good", "report")
    weak = total(tallies, "weak", "report")
    print()
    print(shares("garbage found, fit families   ", total(tallies, "garbage", "fit")))
    print(shares("garbage found, report families", garbage))
    print(shares("false alarms, fit families    ", total(tallies, "good", "fit")))
    print(shares("false alarms, report families ", good))
    print(shares("suspect of a weak model's own ", weak))
    print(shares("found of broken weights       ", total(tallies, "broken", "report")))
    met = garbage.share >= RECALL_LEAST and good.share <= FALSE_ALARMS_MOST and good.bad == weak.bad == 0
    print(
        f"bench-detectors: {'ok' if met else 'MISSED'}: "
        f"recall {garbage.share:.2%} (target {RECALL_LEAST:.0%}), "
        f"false alarms {good.share:.2%} (target {FALSE_ALARMS_MOST:.1%}), good called bad {good.bad}, "
        f"weak called bad {weak.bad} (targets 0)"
    )
    return 0 if met else 1


def show(family: Family) -> None:
    """Print the samples of a family that were judged otherwise than labelled."""
    for sample, found in misjudged(family):
        names = ", ".join(f"{f.name} {f.figure:.3g} ({f.threshold:g})" for f in found)
        text = sample.answers[0].text
        print(f"\n{family.label} {family.name}: {names or 'nothing found'}")
        print(f"  {text[:300]!r} ... {text[-100:]!r}")


if __name__ == "__main__":
    sys.exit(main())

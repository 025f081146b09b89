"""The committed law of campaigns: what is true of twelve configurations, and what a launch of one shows.

Of twelve configurations three do not work (two crash at launch, one answers garbage). The others' true speeds
follow one of the laws below. A launch shows exp(true + drift + launch error) times the mean of its windows;
one launch in a hundred is 5 to 30 % slow, one in a hundred times out.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from factory import GARBAGE, UNSUPPORTED, Cell
from pivotbench.results import Reason

CONFIGURATIONS = 12
CRASH, WRITE_GARBAGE = 2, 1
WINDOWS = 20  # samples of a launch; what they spread by is the sd within a launch
ROUND_DRIFT = 0.01  # sd of what a round does to all
STEP_DRIFT = 0.001  # sd of a random walk from launch to launch: neighbours share it
ODD, ODD_BY = 0.01, (0.05, 0.30)
TIMED_OUT = 0.01
MARGIN = math.log1p(0.02)
COMMITTED = ("uniform", "clustered", "one best")
LAWS = (*COMMITTED, "known", "just outside")
TIMEOUT = Reason.of("timeout", "no answer in 600 s")
# A large model loads for minutes and is measured for less; a crash comes after the load.
STAGE_SECONDS = {"launch": 300.0, "smoke": 20.0, "throughput": 180.0, "teardown": 20.0}


@dataclass(frozen=True)
class Spread:
    """Relative sd between launches and between the windows within one."""

    between: float
    within: float

    def __str__(self) -> str:
        return f"{100 * self.between:g} / {100 * self.within:g}"


SPREADS = (Spread(0.005, 0.01), Spread(0.01, 0.02), Spread(0.02, 0.03), Spread(0.03, 0.05))


@dataclass
class World:
    """One campaign's truth, and the machine it runs on; everything follows from the seed."""

    truth: Mapping[str, float]
    crash: frozenset[str]
    garbage: frozenset[str]
    spread: Spread
    rng: random.Random
    walk: float = 0.0

    @property
    def best(self) -> float:
        """The highest true speed of those that work, on the log scale."""
        return max(self.truth.values())

    @property
    def names(self) -> list[str]:
        """All twelve."""
        return sorted({*self.truth, *self.crash, *self.garbage})

    def round(self, phase: str, names: Sequence[str], round_: int) -> list[Cell]:
        """Launch ``names`` one after another."""
        hit = self.rng.gauss(0, ROUND_DRIFT)
        return [self._launch(phase, name, round_, hit) for name in names]

    def _launch(self, phase: str, name: str, round_: int, hit: float) -> Cell:
        self.walk += self.rng.gauss(0, STEP_DRIFT)
        if name in self.crash:
            return Cell(phase, name, round_, failed="launch", reason=UNSUPPORTED)
        if name in self.garbage:
            return Cell(phase, name, round_, failed="smoke", reason=GARBAGE)
        if self.rng.random() < TIMED_OUT:
            return Cell(phase, name, round_, failed="launch", reason=TIMEOUT)
        log = self.truth[name] + hit + self.walk + self.rng.gauss(0, self.spread.between)
        windows = [1 + self.rng.gauss(0, self.spread.within) for _ in range(WINDOWS)]
        speed = 100 * math.exp(log) * math.fsum(windows) / WINDOWS
        if self.rng.random() < ODD:
            speed *= 1 - self.rng.uniform(*ODD_BY)
        return Cell(phase, name, round_, {("chat", 1): speed})


def world(law: str, spread: Spread, number: int) -> World:
    """Return campaign ``number`` of a law.

    uniform: effects uniform over 0 to 10 %. clustered: within 1 %. one best: by 1.1 %, the others equal.
    known, for the power: five equal, four 3 % behind. just outside, the hardest for "equivalent": one best,
    all others 2.01 % behind it, where the margin is 2 %.
    """
    rng = random.Random(f"{law} {spread} {number}")
    names = [f"c{i:02d}" for i in range(CONFIGURATIONS)]
    rng.shuffle(names)
    crash, garbage = names[:CRASH], names[CRASH : CRASH + WRITE_GARBAGE]
    healthy = names[CRASH + WRITE_GARBAGE :]
    effects = {
        "uniform": [math.log1p(rng.uniform(0, 0.10)) for _ in healthy],
        "clustered": [math.log1p(rng.uniform(0, 0.01)) for _ in healthy],
        "one best": [math.log1p(0.011), *(0.0 for _ in healthy[1:])],
        "just outside": [math.log1p(0.0201), *(0.0 for _ in healthy[1:])],
        "known": [0.0 if i < 5 else -math.log1p(0.03) for i in range(len(healthy))],
    }[law]
    truth = dict(zip(healthy, effects, strict=True))
    return World(truth, frozenset(crash), frozenset(garbage), spread, rng)

"""What the corpus is made of: answers, samples of one or more answers, and families of generators."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Label = Literal["good", "garbage", "weak", "broken", "limit"]
Part = Literal["fit", "report"]


@dataclass(frozen=True)
class Answer:
    """What a server answered: the text, and token ids and logprobs where it gives them."""

    text: str
    token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float | None, ...] | None = None


@dataclass(frozen=True)
class Sample:
    """One thing to judge: an answer, or the answers to several prompts (garbage at one place, or in all)."""

    answers: tuple[Answer, ...]
    garbage_at: int | None = None


@dataclass(frozen=True)
class Family:
    """Samples made in one way, used either to choose thresholds (fit) or only to report."""

    name: str
    label: Label
    part: Part
    samples: tuple[Sample, ...]


Make = Callable[[random.Random], str | Answer | Sample]


@dataclass(frozen=True)
class Maker:
    """A generator of one family: each sample is made with a seed of its own."""

    make: Make
    label: Label
    part: Part
    size: int

    def family(self) -> Family:
        name = self.make.__name__.replace("_", " ")
        made = (self.make(random.Random(f"{name} {number}")) for number in range(self.size))
        return Family(name, self.label, self.part, tuple(_sample(m) for m in made))


class Makers(list[Maker]):
    """The generators of a file, in its order; `family` is the decorator that adds one."""

    def family(self, label: Label, part: Part, size: int) -> Callable[[Make], Make]:
        def register(make: Make) -> Make:
            self.append(Maker(make, label, part, size))
            return make

        return register


def _sample(made: str | Answer | Sample) -> Sample:
    if isinstance(made, Sample):
        return made
    return Sample((Answer(made) if isinstance(made, str) else made,))

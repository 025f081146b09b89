"""What smoke.json files hold of one configuration's answers, over all its rounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from typing import Any, Literal

from pivotbench.engines.base import Alternative
from pivotbench.evidence import CellFiles

Problem = Literal["garbage", "wrong_answer"]
# Below this, a token is as good as impossible (2e-9), and differences are of no consequence.
LEAST_NATS = -20.0


@dataclass(frozen=True)
class Said:
    """One answer: its text, and where the server told them its token ids and the likeliest alternatives.

    ``problem``: garbage where a detector finds it suspect, wrong_answer where it misses what the study
    expects, None for a good answer. ``signs`` names the detectors or the expectation.
    """

    text: str
    token_ids: Sequence[int] | None
    alternatives: Sequence[Sequence[Alternative]] | None
    problem: Problem | None
    signs: str
    logprobs: Sequence[float] | None = None


@dataclass(frozen=True)
class Followed:
    """The log probabilities, in nats, of one continuation in one launch; see engines.forced."""

    text: str
    logprobs: tuple[float, ...]
    at_most: frozenset[int]


@dataclass(frozen=True)
class Level:
    """The log probabilities of one continuation, token by token in the mean over launches.

    What a relaunch changes is no difference between configurations. ``at_most``: the places of mere bounds.
    """

    logprobs: Sequence[float]
    at_most: frozenset[int]

    @classmethod
    def of(cls, launches: Sequence[Followed]) -> Level:
        """Return the level of one configuration's launches, at least one."""
        places = zip(*(launch.logprobs for launch in launches), strict=False)
        means = [fsum([max(value, LEAST_NATS) for value in place]) / len(place) for place in places]
        return cls(means, frozenset().union(*(launch.at_most for launch in launches)))


@dataclass(frozen=True)
class Witness:
    """One configuration: its answers by prompt in the order they were given, its continuations by id.

    ``repeats``: of so many prompts asked again in one launch, so many had the same answer, in this order
    (same, asked again). ``across``: detectors that find its answers to different prompts suspect together, in
    more than half of its rounds.
    """

    configuration: str
    answers: Mapping[str, Sequence[Said]]
    followed: Mapping[str, Sequence[Followed]]
    repeats: tuple[int, int]
    across: frozenset[str]

    @cached_property
    def problems(self) -> dict[str, Problem]:
        """The prompts it fails: more than half of its answers to them, over all rounds, have a problem."""
        found: dict[str, Problem] = {}
        for ask, answers in self.answers.items():
            counted = Counter(a.problem for a in answers if a.problem is not None)
            if counted.total() * 2 > len(answers):
                found[ask] = counted.most_common(1)[0][0]
        return found

    @cached_property
    def levels(self) -> dict[str, Level]:
        """The level of each continuation, by id."""
        return {name: Level.of(launches) for name, launches in self.followed.items()}

    def failing(self, ask: str) -> Said:
        """Return the first answer to a failed prompt that shows its problem."""
        return next(a for a in self.answers[ask] if a.problem == self.problems[ask])

    @property
    def steady(self) -> int:
        """On how many prompts all answers, over all rounds, are the same text."""
        return sum(len({a.text for a in answers}) == 1 for answers in self.answers.values())


def witnesses(cells: Iterable[CellFiles]) -> dict[str, Witness]:
    """Return who answered the smoke test, sorted by name; rounds in which that stage failed say nothing."""
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for cell in sorted(cells, key=lambda c: (c.configuration, c.round)):
        if cell.smoke is not None and cell.smoke["status"] == "ok":
            by_name.setdefault(cell.configuration, []).append(cell.smoke)
    return {name: _witness(name, files) for name, files in by_name.items()}


def _witness(name: str, files: Sequence[Mapping[str, Any]]) -> Witness:
    answers: dict[str, list[Said]] = {}
    followed: dict[str, list[Followed]] = {}
    same = repeated = 0
    across = Counter(f["name"] for file in files for f in file.get("across", ()) if f["verdict"] != "ok")
    for file in files:
        for prompt in file["prompts"]:
            # Results of an earlier version, shown frozen, hold no such list: they say nothing here.
            said = [_said(answer, prompt.get("expectation")) for answer in prompt.get("answers", ())]
            if said:
                answers.setdefault(prompt["ask"], []).extend(said)
            if len(said) > 1:
                repeated += 1
                same += len({answer.text for answer in said}) == 1
        for entry in file.get("continuations") or ():
            if entry["token_logprobs"]:
                told = Followed(
                    entry["prompt"] + entry["continuation"],
                    tuple(entry["token_logprobs"]),
                    frozenset(entry["at_most"]),
                )
                followed.setdefault(entry["id"], []).append(told)
    usual = frozenset(detector for detector, count in across.items() if count * 2 > len(files))
    return Witness(name, answers, followed, (same, repeated), usual)


def _said(answer: Mapping[str, Any], expectation: Mapping[str, Any] | None) -> Said:
    suspect = [d["name"] for d in answer["detectors"] if d["verdict"] != "ok"]
    problem: Problem | None = None
    signs = ""
    if suspect:
        problem, signs = "garbage", ", ".join(suspect)
    elif expectation is not None and answer["met"] is False:
        problem, signs = "wrong_answer", f"{expectation['kind']} {expectation['value']!r}"
    logprobs = answer.get("logprobs")
    return Said(
        text=answer["text"],
        token_ids=answer.get("token_ids"),
        alternatives=answer.get("alternatives"),
        problem=problem,
        signs=signs,
        logprobs=None if logprobs is None or None in logprobs else logprobs,
    )

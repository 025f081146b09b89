"""How the detectors judge the samples of the corpus."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.detectors.samples import Family, Sample

from pivotbench.detectors import Finding, Verdict, first_token_collapse, inspect

GRAVITY: dict[Verdict, int] = {"ok": 0, "suspect": 1, "bad": 2}


@dataclass(frozen=True)
class Tally:
    """How many samples there are, and how many of them got each verdict as their gravest."""

    samples: int = 0
    suspect: int = 0
    bad: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.samples + other.samples, self.suspect + other.suspect, self.bad + other.bad)

    @property
    def alarms(self) -> int:
        return self.suspect + self.bad

    @property
    def share(self) -> float:
        return self.alarms / self.samples if self.samples else 0.0


def judge(sample: Sample) -> list[Finding]:
    """Return every finding on a sample that is not ok.

    Where garbage is in one place, findings elsewhere are not counted: the good families hold the same texts.
    """
    found = [
        finding
        for n, answer in enumerate(sample.answers)
        if sample.garbage_at in (None, n)
        for finding in inspect(answer.text, answer.token_ids, answer.logprobs)
    ]
    if len(sample.answers) > 1 and sample.garbage_at is None:
        found.append(first_token_collapse([answer.text for answer in sample.answers]))
    return [finding for finding in found if finding.verdict != "ok"]


def gravest(sample: Sample) -> Verdict:
    """Return the gravest verdict on a sample."""
    return max((f.verdict for f in judge(sample)), key=GRAVITY.__getitem__, default="ok")


def tally(family: Family) -> Tally:
    """Count the gravest verdicts of a family."""
    verdicts = [gravest(sample) for sample in family.samples]
    return Tally(len(verdicts), verdicts.count("suspect"), verdicts.count("bad"))


def misjudged(family: Family) -> list[tuple[Sample, list[Finding]]]:
    """Return the samples that were judged otherwise than labelled, and what was found on them."""
    judged = [(sample, judge(sample)) for sample in family.samples]
    return [
        (sample, found)
        for sample, found in judged
        if {
            "good": bool(found),
            "garbage": not found,
            "broken": not found,
            "limit": not found,
            "weak": any(f.verdict == "bad" for f in found),
        }[family.label]
    ]

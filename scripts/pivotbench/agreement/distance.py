"""How far log probabilities lie from the reference's: of fixed continuations, and of what both answered.

A continuation is the same text for everybody. Servers that tell the log probabilities of a prompt work them
out in prefill kernels; what is generated comes from decode kernels. So the answers count as well, as far as
they are the same: from their first token to where they part, both have the same text before them.

The default bound of 0.25 nats stands between what is right and what is broken. Measured with SmolLM2-135M
(4-bit weights) in llama.cpp against flash attention on, in nats: relaunched, other batch sizes or unpacked
weights 0; flash attention off 0.04; KV cache in 8 bits 0.04, in 5 bits 0.06 to 0.08, in 4 bits 0.10 to 0.16;
a hundredth of the weights zeroed or shuffled 0.41 to 0.48, or no numbers at all. Large models are steadier
than this one: bf16 keeps 8 bits of a logit of 10 to 20, so rounding moves a log probability by hundredths;
between kernels for the same 4-bit weights only activations are rounded differently. What is not seen: 1/400
of the weights zeroed, 0.15.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from statistics import fmean

from pivotbench.agreement.reading import Followed, Said

# Below this, a token is as good as impossible (2e-9), and differences are of no consequence.
LEAST_NATS = -20.0
# Fewer tokens in common say nothing: they may all be sure ones, or all doubtful.
ANSWER_TOKENS_LEAST = 16


@dataclass(frozen=True)
class Distance:
    """Mean absolute difference of log probabilities over some tokens, and the farthest continuation."""

    mean_nats: float
    tokens: int
    farthest: str


def distance(
    reference: Mapping[str, Sequence[Followed]], other: Mapping[str, Sequence[Followed]]
) -> Distance | None:
    """Return the distance over the continuations that both followed; None where there is none.

    For each token the mean over a configuration's launches is taken first: what a relaunch changes is no
    difference between configurations. Where one of the two is only known to be at most so likely, the
    difference counts as far as it is sure, so the figure errs on the low side.
    """
    differences: dict[str, list[float]] = {}
    for name in reference.keys() & other.keys():
        (ours, our_bounds), (theirs, their_bounds) = _mean(reference[name]), _mean(other[name])
        differences[name] = [
            _difference(a, b, place in our_bounds, place in their_bounds)
            for place, (a, b) in enumerate(zip(ours, theirs, strict=False))
        ]
    every = [d for values in differences.values() for d in values]
    if not every:
        return None
    farthest = max(sorted(differences), key=lambda name: fmean(differences[name] or [0.0]))
    return Distance(fmean(every), len(every), farthest)


def answer_distance(
    reference: Mapping[str, Sequence[Said]], other: Mapping[str, Sequence[Said]]
) -> Distance | None:
    """Return the distance over the tokens that first answers have in common; None where those are too few.

    Tokens on which both agree are likelier than most, so the figure errs on the low side.
    """
    differences: dict[str, list[float]] = {}
    for ask in reference.keys() & other.keys():
        ours, theirs = reference[ask][0], other[ask][0]
        if None in (ours.token_ids, ours.logprobs, theirs.token_ids, theirs.logprobs):
            continue
        tokens = zip(ours.token_ids or (), theirs.token_ids or (), strict=False)
        values = zip(ours.logprobs or (), theirs.logprobs or (), strict=False)
        same = takewhile(lambda pair: pair[0][0] == pair[0][1], zip(tokens, values, strict=False))
        differences[ask] = [abs(max(a, LEAST_NATS) - max(b, LEAST_NATS)) for _, (a, b) in same]
    every = [d for values_ in differences.values() for d in values_]
    if len(every) < ANSWER_TOKENS_LEAST:
        return None
    farthest = max(sorted(differences), key=lambda ask: fmean(differences[ask] or [0.0]))
    return Distance(fmean(every), len(every), farthest)


def _mean(launches: Sequence[Followed]) -> tuple[list[float], frozenset[int]]:
    values = [
        fmean([max(value, LEAST_NATS) for value in place])
        for place in zip(*(launch.logprobs for launch in launches), strict=False)
    ]
    return values, frozenset().union(*(launch.at_most for launch in launches))


def _difference(one: float, other: float, one_at_most: bool, other_at_most: bool) -> float:
    if one_at_most and other_at_most:
        return 0.0
    if one_at_most:
        return max(0.0, other - one)
    if other_at_most:
        return max(0.0, one - other)
    return abs(one - other)

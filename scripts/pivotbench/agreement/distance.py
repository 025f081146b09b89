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
from statistics import fmean

from pivotbench.agreement.departures import common_prefix
from pivotbench.agreement.reading import LEAST_NATS, Level, Said

# Fewer tokens in common say nothing: they may all be sure ones, or all doubtful.
ANSWER_TOKENS_LEAST = 16


@dataclass(frozen=True)
class Distance:
    """Mean absolute difference of log probabilities over some tokens, and the farthest continuation."""

    mean_nats: float
    tokens: int
    farthest: str


def distance(reference: Mapping[str, Level], other: Mapping[str, Level]) -> Distance | None:
    """Return the distance over the continuations that both followed; None where there is none.

    Where one of the two is only known to be at most so likely, the
    difference counts as far as it is sure, so the figure errs on the low side.
    """
    differences: dict[str, list[float]] = {}
    for name in reference.keys() & other.keys():
        ours, theirs = reference[name], other[name]
        differences[name] = [
            _difference(a, b, place in ours.at_most, place in theirs.at_most)
            for place, (a, b) in enumerate(zip(ours.logprobs, theirs.logprobs, strict=False))
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
        values = list(zip(ours.logprobs or (), theirs.logprobs or (), strict=False))
        same = common_prefix(ours.token_ids or (), theirs.token_ids or ())
        differences[ask] = [abs(max(a, LEAST_NATS) - max(b, LEAST_NATS)) for a, b in values[:same]]
    every = [d for values_ in differences.values() for d in values_]
    if len(every) < ANSWER_TOKENS_LEAST:
        return None
    farthest = max(sorted(differences), key=lambda ask: fmean(differences[ask] or [0.0]))
    return Distance(fmean(every), len(every), farthest)


def _difference(one: float, other: float, one_at_most: bool, other_at_most: bool) -> float:
    if one_at_most and other_at_most:
        return 0.0
    if one_at_most:
        return max(0.0, other - one)
    if other_at_most:
        return max(0.0, one - other)
    return abs(one - other)

"""Signs in token ids, logprobs and first tokens, where a server gives them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from math import isfinite

from pivotbench.detectors.finding import Finding, verdict

ONE_TOKEN_LEAST = 32


def token_runs(token_ids: Sequence[int]) -> Finding:
    """Longest run of one token id; suspect from 16 if it is half of the answer, from 64 in any case.

    Tokenizers merge what texts repeat (spaces, dashes, line breaks), so a line of 80 dashes is a few tokens.
    Bad from 32 where the run is the whole answer but one token.
    """
    longest = max((sum(1 for _ in group) for _, group in groupby(token_ids)), default=0)
    threshold = 16 if longest * 2 >= len(token_ids) else 64
    bad = longest >= ONE_TOKEN_LEAST and longest >= len(token_ids) - 1
    return Finding("token_runs", longest, threshold, verdict(suspect=longest >= threshold, bad=bad))


LOGPROB_MOST = 0.01  # log-softmax in 16 bits may round to a little above zero
LOGPROB_LEAST = -100.0


def impossible_logprobs(logprobs: Sequence[float | None]) -> Finding:
    """How many logprobs of chosen tokens cannot be any; bad from 1.

    NaN and infinities, null (JSON has no NaN, so servers write null: llama.cpp does, seen with weights
    overwritten), above zero, and below -100: the likeliest of V tokens has at least -ln V, -12.4 for 250,000,
    and nobody draws one of e^-100; SGLang writes the lowest finite number in place of -inf.
    """
    impossible = sum(
        value is None or not isfinite(value) or not LOGPROB_LEAST <= value <= LOGPROB_MOST
        for value in logprobs
    )
    return Finding("impossible_logprobs", impossible, 1, verdict(suspect=False, bad=impossible >= 1))


OPENING = re.compile(r"\s*(?:<think(?:ing)?>)?\s*(\w+|\S)")
COLLAPSE_ANSWERS_LEAST = 4
COLLAPSE_SHARE = 0.9


def first_token_collapse(
    texts: Sequence[str], token_ids: Sequence[Sequence[int] | None] | None = None
) -> Finding:
    """Share of the answers to different prompts that begin with the same token.

    Wrong numerics in the prefill give one first token whatever is asked. Tokens are compared by id where
    every answer has ids, else by first word (a tag that opens a thought aside). Suspect from 0.9 of 4 or
    more answers; never bad, for some models open every answer with the same word ("Okay", "Sure").
    """
    if token_ids is not None and all(token_ids):
        first = [str(ids[0]) for ids in token_ids if ids]
    else:
        first = [match[1] if (match := OPENING.match(text)) else "" for text in texts]
    share = max(Counter(first).values()) / len(first) if len(first) >= COLLAPSE_ANSWERS_LEAST else 0.0
    return Finding("first_token_collapse", share, COLLAPSE_SHARE, verdict(suspect=share >= COLLAPSE_SHARE))

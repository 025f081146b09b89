"""Signs of a broken backend that need no right answer to compare with.

Each detector is a pure function of a text, of token ids, of logprobs or of several answers; each takes time
linear in their length. What they find and miss is measured by benchmarks/detectors. Not to be found this
way: fluent nonsense, and words that are right in themselves but not in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pivotbench.detectors.characters import (
    broken_characters,
    character_entropy,
    empty,
    line_breaks,
    repeated_characters,
)
from pivotbench.detectors.finding import Finding, Verdict
from pivotbench.detectors.repetition import (
    compression_ratio,
    loop_bytes,
    loop_share,
    repeated_sentences,
    tail_compression_ratio,
)
from pivotbench.detectors.tokens import first_token_collapse, impossible_logprobs, token_runs
from pivotbench.detectors.writing_systems import script_mix

__all__ = [
    "Finding",
    "Verdict",
    "first_token_collapse",
    "impossible_logprobs",
    "inspect",
    "inspect_load_text",
    "token_runs",
]

_TEXT_DETECTORS: tuple[Callable[[str], Finding], ...] = (
    empty,
    line_breaks,
    repeated_characters,
    broken_characters,
    loop_share,
    loop_bytes,
    repeated_sentences,
    compression_ratio,
    tail_compression_ratio,
    character_entropy,
    script_mix,
)


def inspect(
    text: str, token_ids: Sequence[int] | None, logprobs: Sequence[float | None] | None = None
) -> list[Finding]:
    """Return every detector's finding on one answer; of token ids and logprobs only where there are any."""
    findings = [detector(text) for detector in _TEXT_DETECTORS]
    if token_ids is not None:
        findings.append(token_runs(token_ids))
    if logprobs is not None:
        findings.append(impossible_logprobs(logprobs))
    return findings


def inspect_load_text(text: str) -> list[Finding]:
    """Return every finding on a text received under load.

    There most answers are driven past their natural end, and small models then loop, or draw lines, without
    anything being broken: that is suspect, and its share among the answers says something only next to the
    reference's. Bad is what is bad anywhere.
    """
    return inspect(text, None)

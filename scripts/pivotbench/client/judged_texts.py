"""What the detectors say of the answers a run received."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from pivotbench.client.record import RequestRecord
from pivotbench.detectors import inspect_load_text

FIRST_CHARACTERS = 2000


def judge_texts(records: Sequence[RequestRecord]) -> dict[str, Any]:
    """Return {inspected, suspect, bad, first, prompts} over the answers in ``records``.

    ``suspect`` and ``bad`` count the answers by detector; ``first`` is the first bad answer {detector,
    prompt_id, text}, its text cut to FIRST_CHARACTERS, or null. ``prompts`` {inspected, suspect, first}
    counts prompts, since under greedy decoding one that is sent again gives no new evidence: one is suspect
    to a detector where more than half of its answers are.
    """
    counts: dict[str, Counter[str]] = {"suspect": Counter(), "bad": Counter()}
    firsts: dict[str, dict[str, str]] = {}
    asked = Counter(record.prompt_id for record in records)
    suspect: dict[str, Counter[str]] = {}
    for record in records:
        for finding in inspect_load_text(record.text):
            if finding.verdict not in counts:
                continue
            counts[finding.verdict][finding.name] += 1
            if finding.verdict == "suspect":
                suspect.setdefault(finding.name, Counter())[record.prompt_id] += 1
            text = record.text[:FIRST_CHARACTERS]
            found = {"detector": finding.name, "prompt_id": record.prompt_id, "text": text}
            firsts.setdefault(finding.verdict, found)
    return {
        "inspected": len(records),
        **{verdict: dict(sorted(names.items())) for verdict, names in counts.items()},
        "first": firsts.get("bad"),
        "prompts": {
            "inspected": len(asked),
            "suspect": {
                detector: sum(2 * answers > asked[prompt] for prompt, answers in by_prompt.items())
                for detector, by_prompt in sorted(suspect.items())
            },
            "first": firsts.get("suspect"),
        },
    }

"""The whole corpus: generated families, and those of the stored answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.detectors import answers, garbage, good_code, good_signs, good_text, limits
from benchmarks.detectors.samples import Answer, Family, Label, Part, Sample

GENERATORS = (good_text, good_code, good_signs, garbage, limits)


def corpus() -> list[Family]:
    """Return every family, generated ones first; the same at each call."""
    return [*(maker.family() for module in GENERATORS for maker in module.MAKERS), *_real()]


def _real() -> Iterator[Family]:
    parts: tuple[tuple[Part, tuple[str, ...]], ...] = (
        ("fit", answers.FIT_KINDS),
        ("report", answers.REPORT_KINDS),
    )
    sampled, greedy = answers.stored("sampled"), answers.stored("greedy")
    for part, kinds in parts:
        for kind in kinds:
            rows = [r for r in sampled if r["kind"] == kind and not answers.loops(r)]
            yield _family(f"model, sampled: {kind}", "good", part, rows)
        yield _family(
            f"model, greedy ({part})",
            "good",
            part,
            [r for r in greedy if r["kind"] in kinds and not answers.loops(r)],
        )
    yield _family("model, loops", "weak", "report", [r for r in (*sampled, *greedy) if answers.loops(r)])
    yield _family("model, driven past its end", "weak", "report", answers.stored("driven"))
    for damage in sorted({r["damage"] for r in answers.stored("broken")}):
        rows = [r for r in answers.stored("broken") if r["damage"] == damage]
        yield _family(f"weights with {damage}", "broken", "report", rows)


def _family(name: str, label: Label, part: Part, rows: Any) -> Family:
    return Family(name, label, part, tuple(Sample((_answer(r),)) for r in rows))


def _answer(row: dict[str, Any]) -> Answer:
    return Answer(row["text"], tuple(row["token_ids"]), tuple(row["logprobs"]))

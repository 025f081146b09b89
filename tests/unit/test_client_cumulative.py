"""A short cut through events that repeat everything reads what the long way reads."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pivotbench.client.dialects.sglang import SGLangGenerateReader
from pivotbench.client.json_bytes import decode
from pivotbench.client.record import whole_text

TEXTS = {
    "plain": ["He", "Hello", "Hello you"],
    "escapes": ['"', '"\\', '"\\"\n\t', '"\\"\n\t/é\u2028"}'],
    "emoji": ["🙂", "🙂🙂", "🙂🙂 你"],
    "revised end": ["naï", "na\ufffd", "naïve", "naïve!"],
    "no text yet": ["", "", "x", "xy"],
    "incremental": ["one", " two", " two", " three"],
    "repeats itself": ["ha", "haha", "hahaha"],
}


def events(texts: list[str]) -> list[dict[str, Any]]:
    return [
        {
            "text": text,
            "output_ids": list(range(n)),
            "meta_info": {"id": "x", "completion_tokens": n, "finish_reason": None},
        }
        for n, text in enumerate(texts, 1)
    ]


@pytest.mark.parametrize("spaces", [True, False])
@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("ids", [True, False])
@pytest.mark.parametrize("name", TEXTS)
def test_the_short_cut_reads_what_the_long_way_reads(
    name: str, ids: bool, ascii_only: bool, spaces: bool
) -> None:
    short, long = SGLangGenerateReader(), SGLangGenerateReader()
    for event in events(TEXTS[name]):
        if not ids:
            del event["output_ids"]
        written = json.dumps(event, ensure_ascii=ascii_only, separators=None if spaces else (",", ":"))
        data = written.encode("utf-8", "surrogatepass")
        assert short.read_json(data, 1.0) == long.read(decode(data), 1.0)
        assert short.tally == long.tally


def test_halves_of_a_surrogate_pair_meet_again() -> None:
    reader = SGLangGenerateReader()
    written = [json.dumps(event) for event in events(["a\ud83d", "a\ud83d\ude00", "a\ud83d\ude00b"])]
    chunks = [reader.read_json(data.encode(), 1.0) for data in written]
    assert whole_text([chunk for chunk in chunks if chunk]) == "a😀b"


def test_a_long_answer_costs_what_is_new() -> None:
    reader, decoded = SGLangGenerateReader(), []
    whole = events(["word " * n for n in range(1, 200)])
    for event in whole:
        reader.read_json(json.dumps(event).encode(), 1.0)
        decoded.append(reader._event)
    assert all(event["text"] == "word " and "output_ids" not in event for event in decoded[1:])
    assert reader.tally.token_ids == whole[-1]["output_ids"]

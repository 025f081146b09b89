"""Both dialects end in the same chunks and the same tally."""

from __future__ import annotations

from typing import Any

import pytest

from pivotbench.client.dialects import (
    AnswerError,
    Ask,
    Chunk,
    body_of,
    spread_tokens,
)
from pivotbench.client.dialects.openai import OpenAIReader
from pivotbench.client.dialects.sglang import SGLangGenerateReader


def chat(text: str, key: str = "content", **more: Any) -> dict[str, Any]:
    return {"choices": [{"delta": {key: text}, "finish_reason": None}], **more}


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_reasoning_counts_as_output(key: str) -> None:
    assert OpenAIReader().read(chat("hm", key), 1.0) == Chunk(1.0, "hm", 1)


def test_a_completion_is_read_like_a_chat_answer() -> None:
    reader = OpenAIReader()
    usage = {
        "completion_tokens": 3,
        "prompt_tokens": 9,
        "prompt_tokens_details": {"cached_tokens": 4},
    }
    first = reader.read({"choices": [{"text": "Hel", "logprobs": None}], "timings": {"predicted_n": 1}}, 1.0)
    last = reader.read({"choices": [{"text": "lo", "finish_reason": "length"}], "usage": usage}, 2.0)
    assert [first, last] == [Chunk(1.0, "Hel", 1), Chunk(2.0, "lo", 2)]
    tally = reader.tally
    assert (tally.output_tokens, tally.prompt_tokens, tally.cached_tokens) == (3, 9, 4)
    assert tally.finish_reason == "length"


def test_the_role_chunk_is_no_output() -> None:
    assert OpenAIReader().read({"choices": [{"delta": {"role": "assistant", "content": None}}]}, 1.0) is None


def test_a_running_count_tells_how_many_tokens_a_chunk_carries() -> None:
    reader = OpenAIReader()
    chunks = [reader.read(chat("x", timings={"predicted_n": n}), float(n)) for n in (1, 4, 5)]
    assert [c.tokens for c in chunks if c] == [1, 3, 1]
    usage = OpenAIReader()
    assert [
        c.tokens for n in (2, 5) if (c := usage.read(chat("x", usage={"completion_tokens": n}), 0.0))
    ] == [2, 3]


def test_llamacpp_timings_and_usage_fill_the_tally() -> None:
    reader = OpenAIReader()
    reader.read({"choices": [{"delta": {}, "finish_reason": "length"}]}, 0.0)
    timings = {"predicted_n": 96, "cache_n": 3, "draft_n": 40, "draft_n_accepted": 31}
    usage = {"completion_tokens": 96, "prompt_tokens": 12}
    reader.read({"choices": [], "usage": usage, "timings": timings}, 0.0)
    tally = reader.tally
    assert (tally.output_tokens, tally.prompt_tokens, tally.cached_tokens) == (96, 12, 3)
    assert (tally.draft_proposed, tally.draft_accepted, tally.verify_steps) == (40, 31, None)
    assert tally.finish_reason == "length"


def test_no_draft_counts_means_not_reported_and_not_zero() -> None:
    reader = OpenAIReader()
    reader.read({"choices": [], "timings": {"predicted_n": 8}}, 0.0)
    assert reader.tally.draft_proposed is None
    assert reader.tally.draft_accepted is None


@pytest.mark.parametrize(
    ("proposed", "accepted"),
    [
        ("spec_num_proposed_drafts", "spec_num_correct_drafts"),
        ("spec_proposed_drafts", "spec_accepted_drafts"),
        ("spec_draft_token_num", "spec_accept_token_num"),
    ],
)
def test_sglang_text_is_cumulative_and_its_counts_keep_their_meaning(proposed: str, accepted: str) -> None:
    reader = SGLangGenerateReader()
    first = reader.read({"text": "Hel", "meta_info": {"completion_tokens": 1}}, 1.0)
    meta = {
        "completion_tokens": 5,
        "prompt_tokens": 9,
        "cached_tokens": 4,
        "spec_verify_ct": 2,
        proposed: 6,
        accepted: 3,
        "spec_accept_histogram": [0, 1, 1, 0],
        "finish_reason": {"type": "length", "length": 5},
    }
    last = reader.read({"text": "Hello there", "output_ids": [1, 2, 3, 4, 5], "meta_info": meta}, 2.0)
    assert [first, last] == [Chunk(1.0, "Hel", 1), Chunk(2.0, "lo there", 4)]
    tally = reader.tally
    assert (tally.output_tokens, tally.prompt_tokens, tally.cached_tokens) == (5, 9, 4)
    assert (tally.verify_steps, tally.draft_proposed, tally.draft_accepted) == (2, 6, 3)
    assert (tally.accept_histogram, tally.finish_reason) == ([0, 1, 1, 0], "length")
    assert tally.token_ids == [1, 2, 3, 4, 5]


def test_sglang_text_may_revise_its_last_characters_or_be_incremental() -> None:
    revised = SGLangGenerateReader()
    assert [c.text for t in ("day \ufffd", "day 你") if (c := revised.read({"text": t}, 0.0))] == [
        "day \ufffd",
        "你",
    ]
    incremental = SGLangGenerateReader()
    texts = ["The sky", " is", " blue"]
    assert "".join(c.text for t in texts if (c := incremental.read({"text": t}, 0.0))) == "The sky is blue"


@pytest.mark.parametrize(
    "event",
    [
        {"error": {"message": "out of memory"}},
        {"meta_info": {"finish_reason": {"type": "abort", "message": "out of memory"}}},
    ],
)
def test_an_error_inside_a_stream_is_an_error(event: dict[str, Any]) -> None:
    with pytest.raises(AnswerError, match="out of memory"):
        SGLangGenerateReader().read(event, 0.0)


def pieces(*texts: str, tokens: int = 1) -> list[Chunk]:
    return [Chunk(float(i), text, tokens) for i, text in enumerate(texts)]


def test_a_surplus_goes_to_the_longer_pieces_and_the_sum_is_the_servers() -> None:
    assert spread_tokens(pieces("a", "a whole phrase", "b"), 6, counts=False) == [1, 4, 1]


def test_a_surplus_after_a_running_count_came_last() -> None:
    assert spread_tokens(pieces("a long piece", "b"), 4, counts=True) == [1, 3]


def test_more_pieces_than_tokens_leaves_the_shortest_without() -> None:
    assert spread_tokens(pieces("aa", "b", "ccc"), 2, counts=False) == [1, 0, 1]


def test_output_length_is_fixed_and_decoding_greedy_in_both_dialects() -> None:
    ask = Ask(({"role": "user", "content": "hi"},), 32, ignore_eos=True)
    chat_body = body_of("openai-chat", ask, "m")
    assert (chat_body["max_tokens"], chat_body["ignore_eos"], chat_body["temperature"]) == (32, True, 0)
    assert chat_body["stream_options"]["include_usage"] is True
    own = body_of("sglang-generate", ask, "m")
    assert own["sampling_params"] == {"max_new_tokens": 32, "temperature": 0, "ignore_eos": True}
    assert own["text"] == "hi"


def test_sglang_is_sent_the_tokens_of_the_chat_form_where_the_model_has_one() -> None:
    ask = Ask(({"role": "user", "content": "hi"},), 32, ignore_eos=False, prompt_ids=(1, 5, 2))
    own = body_of("sglang-generate", ask, "m")
    assert own["input_ids"] == [1, 5, 2] and "text" not in own


def test_a_completion_is_asked_for_with_token_ids_or_with_the_conversation_as_one_text() -> None:
    talk = ({"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"})
    body = body_of("openai-completions", Ask(talk, 32, ignore_eos=True), "m")
    assert body["prompt"] == "be brief\n\nhi" and "messages" not in body
    assert (body["max_tokens"], body["ignore_eos"], body["temperature"]) == (32, True, 0)
    said = ({"role": "assistant", "content": " hello"}, {"role": "user", "content": "bye"})
    more = body_of("openai-completions", Ask((*talk, *said), 32, ignore_eos=True), "m")
    assert more["prompt"] == "be brief\n\nhi hello\n\nbye", "the answer stands where the server wrote it"
    ids = body_of("openai-completions", Ask((), 32, ignore_eos=True, prompt_ids=(1, 5, 2)), "m")
    assert ids["prompt"] == [1, 5, 2]

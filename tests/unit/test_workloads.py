"""Prompts, salts and their order."""

from __future__ import annotations

from pathlib import Path

import pytest

from pivotbench.errors import UserError
from pivotbench.workloads import (
    Prompt,
    PromptOrder,
    Prompts,
    TokenPrompts,
    Vocabulary,
    WordPrompts,
    load_prompts,
    salted,
)


def write(folder: Path, text: str) -> Path:
    path = folder / "prompts.jsonl"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_prompt_file_holds_prompts_or_conversations(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        '{"id": "a", "prompt": "你好"}\n\n'
        '{"id": "b", "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]}\n',
    )
    first, second = load_prompts(path)
    assert first == Prompt("a", ({"role": "user", "content": "你好"},))
    assert (second.id, [m["role"] for m in second.messages]) == ("b", ["system", "user"])


@pytest.mark.parametrize("begin", ["", "\ufeff"])
@pytest.mark.parametrize("between", [" ", "\u2028", "\u2029", "\u0085"])
def test_a_prompt_is_loaded_with_its_line_separators_and_without_a_byte_order_mark(
    tmp_path: Path, begin: str, between: str
) -> None:
    said = f"one{between}two"
    [prompt] = load_prompts(write(tmp_path, f'{begin}{{"id": "a", "prompt": "{said}"}}\r\n'))
    assert prompt.messages == ({"role": "user", "content": said},)


def test_a_wrong_line_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"prompts\.jsonl:2: not valid JSON"):
        load_prompts(write(tmp_path, '{"id": "a", "prompt": "a"}\n{"prompt": '))


def test_a_missing_file_is_a_user_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        load_prompts(tmp_path / "none.jsonl")


def test_order_is_seeded_and_every_pass_holds_every_prompt() -> None:
    prompts = [Prompt(str(n), ({"role": "user", "content": str(n)},)) for n in range(7)]
    order, same, other = (PromptOrder(prompts, seed) for seed in ("s/1", "s/1", "s/2"))
    ids = [order[i].id for i in range(21)]
    assert [same[i].id for i in reversed(range(21))] == ids[::-1]
    assert [other[i].id for i in range(21)] != ids
    for start in (0, 7, 14):
        assert sorted(ids[start : start + 7]) == sorted(p.id for p in prompts)


def test_a_salt_changes_the_first_words_only() -> None:
    prompt = Prompt("a", ({"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}))
    one, two = salted(prompt, "x").messages, salted(prompt, "y").messages
    assert one == salted(prompt, "x").messages and one[0] != two[0]
    assert one[0]["content"].endswith("be brief") and one[1] == prompt.messages[1]


def test_a_conversation_goes_on_with_the_real_answers_and_nothing_is_cut(tmp_path: Path) -> None:
    path = write(tmp_path, '{"id": "a", "system": "s", "turns": ["one", "two", "three"]}')
    [first] = load_prompts(path)
    second = first.after("answer one")
    assert second is not None
    third = second.after("answer two")
    assert third is not None and third.after("answer three") is None
    assert [(m["role"], m["content"]) for m in third.messages] == [
        ("system", "s"),
        ("user", "one"),
        ("assistant", "answer one"),
        ("user", "two"),
        ("assistant", "answer two"),
        ("user", "three"),
    ]
    assert [p.turn for p in (first, second, third)] == [0, 1, 2]


def test_synthetic_prompts_are_seeded_and_have_exactly_the_lengths_asked_for() -> None:
    def ids(prompts: Prompts) -> list[tuple[int, ...]]:
        return [prompts.at(n, f"salt {n}").token_ids or () for n in range(4)]

    words = Vocabulary(tuple(range(100, 160)))
    drawn = ids(TokenPrompts(words, [50, 7], 0.0, "s"))
    assert drawn == ids(TokenPrompts(words, [50, 7], 0.0, "s"))
    assert drawn != ids(TokenPrompts(words, [50, 7], 0.0, "t"))
    assert [len(prompt) for prompt in drawn] == [50, 7, 50, 7]
    assert all(100 <= token < 160 for prompt in drawn for token in prompt)


def test_the_shared_share_of_synthetic_prompts_is_common_and_the_rest_is_new_every_time() -> None:
    prompts = TokenPrompts(Vocabulary(tuple(range(1000))), [40, 20], 0.5, "s")
    one, two, short = (prompts.at(n, f"salt {n}").token_ids or () for n in (0, 2, 1))
    assert one[:20] == two[:20] and short[:10] == one[:10]
    assert one[20:] != two[20:] and short[10:] != one[10:20]
    assert prompts.at(0, "another").token_ids != one


def test_synthetic_prompts_begin_as_every_text_of_the_model_and_keep_their_length() -> None:
    for shared in (0.0, 0.5, 1.0):
        prompts = TokenPrompts(Vocabulary((7, 8), begin=(1, 2)), [40, 2, 1], shared, "s")
        drawn = [prompts.at(n, f"salt {n}").token_ids or () for n in range(3)]
        assert [len(prompt) for prompt in drawn] == [40, 2, 1]
        assert drawn[0][:2] == drawn[1] == (1, 2) and not {1, 2} & set(drawn[0][2:])


def test_a_server_without_a_tokenizer_gets_as_many_words() -> None:
    prompt = WordPrompts([30], 0.5, "s").at(0, "salt")
    assert prompt.token_ids is None
    assert len(prompt.messages[0]["content"].split()) == 30

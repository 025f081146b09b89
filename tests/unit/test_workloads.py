"""Prompts, salts and their order."""

from __future__ import annotations

from pathlib import Path

import pytest

from pivotbench.errors import UserError
from pivotbench.workloads import Prompt, PromptOrder, load_prompts, salted, synthetic_prompts


def write(folder: Path, text: str) -> Path:
    path = folder / "prompts.jsonl"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_prompt_file_holds_prompts_or_conversations(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        '{"id": "a", "prompt": "你好"}\n\n'
        '{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]}\n',
    )
    first, second = load_prompts(path)
    assert first == Prompt("a", ({"role": "user", "content": "你好"},))
    assert (second.id, [m["role"] for m in second.messages]) == ("line-3", ["system", "user"])


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ('{"prompt": "a"}\n{"prompt": ', ":2:", "not a JSON object"),
        ('{"text": "a"}', ":1:", '"prompt"'),
        ('{"messages": [{"role": "user"}]}', ":1:", '"content"'),
        ("\n", "", "holds no prompt"),
        ('{"id": "a", "prompt": "x"}\n{"id": "a", "prompt": "y"}', "", "share an id"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, text: str, where: str, what: str) -> None:
    with pytest.raises(UserError) as caught:
        load_prompts(write(tmp_path, text))
    assert f"prompts.jsonl{where}" in str(caught.value) and what in str(caught.value)


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
    one, two = salted(prompt, "x"), salted(prompt, "y")
    assert one == salted(prompt, "x") and one[0] != two[0]
    assert one[0]["content"].endswith("be brief") and one[1] == prompt.messages[1]


def test_synthetic_prompts_are_seeded_and_have_the_length_asked_for() -> None:
    prompts = synthetic_prompts(50, "s")
    assert prompts == synthetic_prompts(50, "s") != synthetic_prompts(50, "t")
    assert {len(p.messages[0]["content"].split()) for p in prompts} == {50}

"""A small draft that is taught to give its target's distribution on the target's own answers."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from benchmarks.gpu.layers import picked

BATCH_ANSWERS, BATCH_STEPS = 64, 16
LONGEST_PROMPT = 1500
LONGEST_TEXT = 192
LEARNING_RATE = 1e-3
WARM_UP_STEPS = 20


@dataclass(frozen=True)
class Lesson:
    """How long the taught answers are, in tokens, and how many optimiser steps they are taught for."""

    answer_tokens: int
    steps: int


def prompts_to_teach(folder: Path, measured: Collection[str]) -> list[str]:
    """Return the prompts of all sets but the measured, long ones left out; exits where there are none."""
    files = sorted(path for path in folder.glob("*.jsonl") if path.stem not in measured)
    lines = [json.loads(line) for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    prompts = [line["prompt"] for line in lines if len(line.get("prompt", "")) in range(1, LONGEST_PROMPT)]
    if not prompts:
        raise SystemExit(f"error: {folder} holds no prompts to teach besides those measured")
    return prompts


def taught(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[str],
    lesson: Lesson,
    build: Callable[[dict[str, Any], int], Any],
) -> Any:
    """Return a draft of the first two layers and the last one, taught; on the CPU, in the model's dtype.

    It keeps the target's embeddings, so that both speak the same tokens. The loss is the divergence of its
    distribution from the target's (Kullback-Leibler), after each token of prompt and answer.
    """
    texts = list(answers(model, tokenizer, prompts, lesson.answer_tokens))
    print(f"{len(texts)} answers to {len(prompts)} prompts", flush=True)
    kept = (0, 1, model.config.num_hidden_layers - 1)
    draft = build(picked(model.state_dict(), kept), len(kept)).to(model.device).train()
    draft.get_input_embeddings().weight.requires_grad_(False)
    optimizer = torch.optim.AdamW(
        [weight for weight in draft.parameters() if weight.requires_grad], weight_decay=0.0
    )
    chance = random.Random(0)
    for step in range(lesson.steps):
        rate = LEARNING_RATE * min(1, (step + 1) / WARM_UP_STEPS) * (1 - step / lesson.steps)
        optimizer.param_groups[0]["lr"] = rate
        texts_now = chance.sample(texts, min(BATCH_STEPS, len(texts)))
        loss, agreement = _losses(model, draft, texts_now, tokenizer.pad_token_id)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(draft.parameters(), 1.0)
        optimizer.step()
        if (step + 1) % 100 == 0 or step + 1 == lesson.steps:
            print(
                f"step {step + 1}: divergence {loss.item():.3f}, same likeliest token {agreement:.3f}",
                flush=True,
            )
    return draft.to(model.dtype).cpu().eval()


def answers(model: Any, tokenizer: Any, prompts: Sequence[str], tokens: int) -> Iterator[list[int]]:
    """Yield the token ids of each prompt in chat form with the model's greedy answer, padding left off."""
    for first in range(0, len(prompts), BATCH_ANSWERS):
        texts = [
            tokenizer.apply_chat_template(
                [{"role": "user", "content": prompt}], add_generation_prompt=True, tokenize=False
            )
            for prompt in prompts[first : first + BATCH_ANSWERS]
        ]
        asked = tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=False).to(model.device)
        with torch.no_grad():
            spoken = model.generate(
                **asked, max_new_tokens=tokens, do_sample=False, pad_token_id=tokenizer.pad_token_id
            )
        for mask, text in zip(asked["attention_mask"], spoken, strict=True):
            yield text[int((mask == 0).sum()) :].tolist()


def _losses(model: Any, draft: Any, texts: Sequence[list[int]], padding: int) -> tuple[Any, float]:
    cut = [text[:LONGEST_TEXT] for text in texts]
    length = max(map(len, cut))
    ids = torch.tensor([text + [padding] * (length - len(text)) for text in cut], device=model.device)
    mask = torch.tensor([[1] * len(text) + [0] * (length - len(text)) for text in cut], device=model.device)
    with torch.no_grad():
        wanted = model(input_ids=ids, attention_mask=mask).logits.float()
    with torch.autocast(model.device.type, dtype=torch.bfloat16):
        given = draft(input_ids=ids, attention_mask=mask).logits.float()
    apart = torch.nn.functional.kl_div(
        given.log_softmax(-1), wanted.log_softmax(-1), log_target=True, reduction="none"
    ).sum(-1)
    same = (given.argmax(-1) == wanted.argmax(-1)).float()
    return (apart * mask).sum() / mask.sum(), float((same * mask).sum() / mask.sum())

"""What is sent: prompt sets, synthetic prompts, salts, and the order in which prompts come."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from pivotbench.errors import UserError

SYNTHETIC_PROMPTS = 32

# Short everyday words: with a leading space nearly every one is a single token in BPE vocabularies.
_WORDS = (
    "time year people way day man thing woman life child world school state family student group country "
    "problem hand part place case week company system program question work number night point home water "
    "room mother area money story fact month lot right study book eye job word business issue side kind "
    "head house service friend father power hour game line end member law car city name team minute idea"
)


@dataclass(frozen=True)
class Prompt:
    """One conversation to answer; ``messages`` are {role, content} in the order of the talk."""

    id: str
    messages: tuple[dict[str, str], ...]


def load_prompts(path: Path) -> list[Prompt]:
    """Return the prompts of a JSONL file: {"id", "prompt"} or {"id", "messages"}, one object a line.

    Without an id a prompt is named by its line. Raises UserError with file and line.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read as a prompt file ({error})") from error
    prompts = [_parse(line, f"{path}:{n}", n) for n, line in enumerate(lines, 1) if line.strip()]
    if not prompts:
        raise UserError(f'{path}: holds no prompt; give one JSON object a line with a "prompt"')
    if len({prompt.id for prompt in prompts}) < len(prompts):
        raise UserError(f"{path}: two prompts share an id; give each its own")
    return prompts


def _parse(line: str, where: str, number: int) -> Prompt:
    try:
        data: Any = json.loads(line)
    except ValueError as error:
        raise UserError(f"{where}: not a JSON object ({error})") from error
    if isinstance(data, dict) and isinstance(data.get("prompt"), str):
        messages = [{"role": "user", "content": data["prompt"]}]
    elif isinstance(data, dict) and isinstance(data.get("messages"), list) and data["messages"]:
        messages = data["messages"]
    else:
        raise UserError(f'{where}: needs a "prompt" (text) or "messages" (a list)')
    for message in messages:
        if not isinstance(message, dict) or not all(
            isinstance(message.get(k), str) for k in ("role", "content")
        ):
            raise UserError(f'{where}: each message needs a "role" and a "content", both text')
    return Prompt(
        id=str(data.get("id", f"line-{number}")),
        messages=tuple({"role": m["role"], "content": m["content"]} for m in messages),
    )


def synthetic_prompts(prompt_tokens: int, seed: str) -> list[Prompt]:
    """Return SYNTHETIC_PROMPTS prompts of random words, about ``prompt_tokens`` tokens each.

    The length is approximate (a word counts as a token); the server's count is what gets reported. Random
    words say nothing about speculation: how often a draft is accepted depends on the text.
    """
    dice = random.Random(f"{seed}/synthetic/{prompt_tokens}")
    return [
        Prompt(
            f"synthetic-{n}",
            ({"role": "user", "content": " ".join(dice.choices(_WORDS.split(), k=prompt_tokens))},),
        )
        for n in range(SYNTHETIC_PROMPTS)
    ]


def salted(prompt: Prompt, salt: str) -> tuple[dict[str, str], ...]:
    """Return the messages with "Question <six digits>: " before the first one's text.

    Digits in a sentence are less often taken for something to copy than a tag would be. A prefix cache
    matches from the first token on, so only what the chat template puts in front of the first message
    can still be answered from it. The salt is the same for every configuration.
    """
    first, *rest = prompt.messages
    number = int(sha256(salt.encode()).hexdigest(), 16) % 900_000 + 100_000
    return ({**first, "content": f"Question {number}: {first['content']}"}, *rest)


class PromptOrder:
    """An endless, seeded order: every pass over the set is shuffled anew, none repeats before all came."""

    def __init__(self, prompts: list[Prompt], seed: str) -> None:
        self._prompts = prompts
        self._seed = seed
        self._passes: dict[int, list[Prompt]] = {}

    def __getitem__(self, position: int) -> Prompt:
        """Return the prompt at a position counted from 0, the same for the same seed."""
        turn, place = divmod(position, len(self._prompts))
        if turn not in self._passes:
            shuffled = list(self._prompts)
            random.Random(f"{self._seed}/{turn}").shuffle(shuffled)
            self._passes[turn] = shuffled
        return self._passes[turn][place]

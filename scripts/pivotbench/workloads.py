"""What is sent: prompt sets, conversations, synthetic prompts, salts, and the order in which prompts come."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from pivotbench.prompt_files import read_prompts

# Short everyday words: with a leading space nearly every one is a single token in BPE vocabularies.
WORDS = (
    "time year people way day man thing woman life child world school state family student group country "
    "problem hand part place case week company system program question work number night point home water "
    "room mother area money story fact month lot right study book eye job word business issue side kind "
    "head house service friend father power hour game line end member law car name team minute idea"
)


@dataclass(frozen=True)
class Prompt:
    """What to send: ``messages`` are {role, content} in the order of the talk.

    ``later`` holds what the user says in the turns to come, each after the answer to the one before.
    ``token_ids`` are sent in place of the messages where there are some.
    """

    id: str
    messages: tuple[dict[str, str], ...]
    later: tuple[str, ...] = ()
    turn: int = 0
    token_ids: tuple[int, ...] | None = None

    def after(self, answer: str) -> Prompt | None:
        """Return the next turn, with ``answer`` in its history, or None at the conversation's end.

        Nothing is ever cut from the history: it grows by a question and an answer a turn.
        """
        if not self.later:
            return None
        said = {"role": "assistant", "content": answer}
        asked = {"role": "user", "content": self.later[0]}
        return replace(self, messages=(*self.messages, said, asked), later=self.later[1:], turn=self.turn + 1)


class Prompts(Protocol):
    """Where a run takes its prompts from: the same for every configuration, as long as the seeds are."""

    def at(self, position: int, salt: str) -> Prompt:
        """Return the prompt at a position counted from 0, made new to a prefix cache by ``salt``."""
        ...


def load_prompts(path: Path) -> list[Prompt]:
    """Return the prompts of a JSONL file in one of the forms of prompt_files. Raises UserError."""
    return [_prompt(entry) for entry in read_prompts(path)]


def _prompt(entry: dict[str, Any]) -> Prompt:
    messages, later = entry.get("messages"), ()
    if messages is None:
        opening, *rest = entry.get("turns") or [entry["prompt"]]
        messages = [{"role": "system", "content": entry["system"]}] if "system" in entry else []
        messages += [{"role": "user", "content": opening}]
        later = tuple(rest)
    return Prompt(id=entry["id"], messages=tuple(messages), later=later)


class TextPrompts:
    """Prompts of a file, salted, in a seeded order."""

    def __init__(self, prompts: Sequence[Prompt], seed: str) -> None:
        self._order = PromptOrder(prompts, seed)

    def at(self, position: int, salt: str) -> Prompt:
        """Return the prompt at a position, its first words changed by ``salt``."""
        return salted(self._order[position], salt)


@dataclass(frozen=True)
class Vocabulary:
    """Token ids of ordinary words, and those with which the model has every text begin, if any."""

    words: tuple[int, ...]
    begin: tuple[int, ...] = ()


class TokenPrompts:
    """Random prompts of exactly the lengths asked for, in token ids of ordinary words.

    They begin as every text of the model does, without which some write nothing sensible. The first
    ``shared_prefix`` share of each is the same in all of them, the rest is drawn anew for every salt: a
    prefix cache can answer the one and not the other. Random tokens say nothing about speculation: how
    often a draft is accepted depends on the text.
    """

    def __init__(
        self, vocabulary: Vocabulary, lengths: Sequence[int], shared_prefix: float, seed: str
    ) -> None:
        self._vocabulary, self._lengths, self._share, self._seed = vocabulary, lengths, shared_prefix, seed
        common = random.Random(f"{seed}/shared").choices(vocabulary.words, k=max(lengths))
        self._common = (*vocabulary.begin, *common)

    def at(self, position: int, salt: str) -> Prompt:
        """Return the prompt at a position; lengths are taken in turn."""
        length = self._lengths[position % len(self._lengths)]
        shared = max(round(self._share * length), len(self._vocabulary.begin))
        prefix = self._common[: min(shared, length)]
        dice = random.Random(f"{self._seed}/{salt}")
        own = dice.choices(self._vocabulary.words, k=length - len(prefix))
        return Prompt(f"synthetic-{length}", (), token_ids=(*prefix, *own))


class WordPrompts:
    """Random words for a server that takes no token ids: a word counts as a token, about.

    Shared and own part are those of TokenPrompts.
    """

    def __init__(self, lengths: Sequence[int], shared_prefix: float, seed: str) -> None:
        self._words = WORDS.split()
        places = Vocabulary(tuple(range(len(self._words))))
        self._places = TokenPrompts(places, lengths, shared_prefix, seed)

    def at(self, position: int, salt: str) -> Prompt:
        """Return the prompt at a position; lengths are taken in turn."""
        prompt = self._places.at(position, salt)
        text = " ".join(self._words[place] for place in prompt.token_ids or ())
        return replace(prompt, messages=({"role": "user", "content": text},), token_ids=None)


def salted(prompt: Prompt, salt: str) -> Prompt:
    """Return the prompt with "Question <six digits>: " before its first message's text.

    Digits in a sentence are less often taken for something to copy than a tag would be. A prefix cache
    matches from the first token on, so only what the chat template puts in front of the first message
    can still be answered from it. The salt is the same for every configuration.
    """
    first, *rest = prompt.messages
    number = int(sha256(salt.encode()).hexdigest(), 16) % 900_000 + 100_000
    opening = {**first, "content": f"Question {number}: {first['content']}"}
    return replace(prompt, messages=(opening, *rest))


class PromptOrder:
    """An endless, seeded order: every pass over the set is shuffled anew, none repeats before all came."""

    def __init__(self, prompts: Sequence[Prompt], seed: str) -> None:
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


def load_in_words(run: Mapping[str, Any]) -> str:
    """Return a run's load: a workload at a concurrency, or in an open loop at a rate."""
    if run["concurrency"] is None:
        return f"{run['workload']} at {run['rate_per_second']:g} requests/s"
    return f"{run['workload']} at concurrency {run['concurrency']}"

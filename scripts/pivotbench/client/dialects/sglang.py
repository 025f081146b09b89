"""SGLang's own dialect, POST /generate."""

from __future__ import annotations

from typing import Any

from pivotbench.client.dialects.asks import TOP_LOGPROBS, Ask, plain_text
from pivotbench.client.dialects.cumulative import CumulativeDecoder
from pivotbench.client.dialects.reading import (
    AnswerError,
    Chunk,
    Tally,
    count,
    first,
    logprob,
    raise_reported,
    read_speculation,
    token_ids,
    told,
)

_LOGPROBS = {"return_logprob": True, "top_logprobs_num": TOP_LOGPROBS, "return_text_in_logprobs": True}


def generate_body(ask: Ask) -> dict[str, Any]:
    """Return the body of POST /generate: the ids where there are some, else one plain text."""
    prompt = {"text": plain_text(ask)} if ask.prompt_ids is None else {"input_ids": list(ask.prompt_ids)}
    return {
        **prompt,
        "sampling_params": {
            "max_new_tokens": ask.max_tokens,
            "temperature": 0,
            "ignore_eos": ask.ignore_eos,
        },
        "stream": True,
        **(_LOGPROBS if ask.token_ids else {}),
    }


class SGLangGenerateReader:
    """Events of /generate: `text` is cumulative, or incremental where the server was started so."""

    def __init__(self) -> None:
        self.counts = False
        self.finished = False
        self._tally = Tally()
        self._event: dict[str, Any] = {}
        self._decoder = CumulativeDecoder()
        self._text = ""
        self._text_since: list[str] = []
        self._counted = 0

    def read(self, event: dict[str, Any], seconds: float) -> Chunk | None:
        """Return the chunk in one event, if it carries text or tokens; raises as read_json."""
        return self._take(event, self._added(event.get("text") or ""), seconds)

    def read_json(self, data: bytes, seconds: float) -> Chunk | None:
        """Read an event as it came. Raises AnswerError, or one of UNREADABLE."""
        event, added = self._decoder.decode(data)
        if added is None:
            chunk = self.read(event, seconds)
            if event.get("text") == self._text:
                self._decoder.follow(data)
            return chunk
        self._text_since.append(added)
        return self._take(event, added, seconds)

    def _take(self, event: dict[str, Any], text: str, seconds: float) -> Chunk | None:
        if event.get("error"):
            raise_reported(event)
        self._event = event
        meta = event.get("meta_info") or {}
        if finish := meta.get("finish_reason"):
            reason = str(finish.get("type")) if isinstance(finish, dict) else str(finish)
            self.finished, self._tally.finish_reason = True, reason
            if reason == "abort":
                said = finish.get("message", "") if isinstance(finish, dict) else ""
                raise AnswerError(f"reported in the stream: aborted: {said}")
        running = meta.get("completion_tokens")
        if running is None:
            tokens = int(bool(text))
        else:
            self.counts = True
            tokens = max(0, count(running) - self._counted)
        self._counted += tokens
        return Chunk(seconds, text, tokens) if text or tokens else None

    @property
    def tally(self) -> Tally:
        """The server's account as of the newest event, each of which holds all that came before.

        Raises one of UNREADABLE.
        """
        tally, event = self._tally, self._event
        meta = event.get("meta_info") or {}
        for key, name in (
            ("prompt_tokens",) * 2,
            ("cached_tokens",) * 2,
            ("output_tokens", "completion_tokens"),
        ):
            if (value := first(meta, name)) is not None:
                setattr(tally, key, value)
        read_speculation(tally, meta)
        ids = event.get("output_ids", self._decoder.token_ids)
        if isinstance(ids, list):
            tally.token_ids = token_ids(ids)
        if meta.get("output_token_logprobs"):
            tally.logprobs = [logprob(entry[0]) for entry in meta["output_token_logprobs"]]
        if meta.get("output_top_logprobs"):
            tally.alternatives = [
                [(told(token, int), told(text, str), logprob(value)) for value, token, text in place or []]
                for place in meta["output_top_logprobs"]
            ]
        return tally

    def _added(self, text: str) -> str:
        self._text += "".join(self._text_since)
        self._text_since.clear()
        if text.startswith(self._text):
            added, self._text = text[len(self._text) :], text
            return added
        # A cumulative text repeats what came before, save a few characters at its end that were
        # not final; an incremental one is short and starts elsewhere.
        shared = next(
            (i for i, (a, b) in enumerate(zip(self._text, text, strict=False)) if a != b),
            min(len(self._text), len(text)),
        )
        if shared * 2 >= len(self._text):
            self._text = text
            return text[shared:]
        self._text += text
        return text

"""One answer on its way, and what the server counts about it."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from sglang.answers import Step, token_id


@dataclass
class Generation:
    """One answer on its way: its tokens so far and what the server counts about it."""

    prompt: str
    prompt_tokens: int
    cached_tokens: int
    tokens: list[str]
    finish: str
    length: float | None
    drafted: int
    began: float = field(default_factory=time.monotonic)
    given: list[str] = field(default_factory=list)
    verified: int = 0
    proposed: int = 0
    accepted: int = 0

    def take(self, step: Step) -> None:
        """Count one decoding step."""
        self.given.extend(step.tokens)
        if self.length is not None:
            self.verified += 1
            self.proposed += step.proposed
            self.accepted += step.accepted

    def meta_info(self, *, done: bool, logprobs: bool) -> dict[str, Any]:
        """Return SGLang's ``meta_info`` of this moment."""
        count = len(self.given)
        stop = {"type": "stop", "matched": 2}
        reason = stop if self.finish == "stop" else {"type": "length", "length": count}
        info: dict[str, Any] = {
            "id": uuid.uuid4().hex,
            "finish_reason": reason if done else None,
            "prompt_tokens": self.prompt_tokens,
            "weight_version": "default",
            "completion_tokens": count,
            "cached_tokens": self.cached_tokens,
            "e2e_latency": time.monotonic() - self.began,
        }
        if logprobs:
            info["output_token_logprobs"] = [[-0.25, token_id(t), t] for t in self.given]
            other = [-2.5, token_id(" or"), " or"]
            info["output_top_logprobs"] = [[[-0.25, token_id(t), t], other] for t in self.given]
        if self.length is not None and self.verified:
            info["spec_verify_ct"] = self.verified
            info["spec_accept_length"] = count / self.verified
            info["spec_accept_rate"] = self.accepted / max(1, self.proposed)
            info["spec_proposed_drafts"] = self.proposed
            info["spec_accepted_drafts"] = self.accepted
        return info

    def usage(self) -> dict[str, Any]:
        """Return OpenAI's ``usage`` of this moment."""
        out = len(self.given)
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": out,
            "total_tokens": self.prompt_tokens + out,
            "prompt_tokens_details": {"cached_tokens": self.cached_tokens},
        }

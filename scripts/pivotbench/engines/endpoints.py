"""The kinds of streaming answers that are spoken, and what a study calls each."""

from __future__ import annotations

from typing import Literal

Dialect = Literal["openai-chat", "openai-completions", "sglang-generate"]

ENDPOINTS: dict[str, Dialect] = {
    "chat": "openai-chat",
    "completions": "openai-completions",
    "native": "sglang-generate",
}

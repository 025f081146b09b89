"""What a reader of a run must know, each thing with one wording."""

from __future__ import annotations

from enum import StrEnum


class RunWarning(StrEnum):
    """A warning's code; its text is in TEXTS."""

    UNSTABLE_WARMUP = "unstable_warmup"
    CLIENT_BOUND = "client_bound"
    REQUESTS_LOST = "requests_lost"
    COUNTS_DIFFER = "counts_differ"
    NO_SERVER_COUNT = "no_server_count"
    CACHED_PROMPTS = "cached_prompts"
    ACCEPTANCE_DIFFERS = "acceptance_differs"


TEXTS = {
    RunWarning.UNSTABLE_WARMUP: "the rate had not settled when the warm-up's time was up",
    RunWarning.CLIENT_BOUND: "the client woke later than a token takes: this run measures the client",
    RunWarning.REQUESTS_LOST: "{lost} of {sent} requests failed, stopped short or timed out",
    RunWarning.COUNTS_DIFFER: (
        "the server counts {server} output tokens, its streams {stream}; the server's count is used"
    ),
    RunWarning.NO_SERVER_COUNT: "the server reports no token count: tokens are counted as chunks",
    RunWarning.CACHED_PROMPTS: "{cached} of {ok} prompts came from the prefix cache, salt and all",
    RunWarning.ACCEPTANCE_DIFFERS: (
        "{answers} tokens a forward pass by the answers, {metrics} by the server's counters"
    ),
}


def warn(which: RunWarning, **figures: object) -> str:
    """Return ``code: text`` with the figures filled in."""
    return f"{which}: {TEXTS[which].format(**figures)}"

"""What a reader of a run must know, each thing with one wording."""

from __future__ import annotations

from enum import StrEnum


class RunWarning(StrEnum):
    """A warning's code; its text is in TEXTS."""

    NOT_IDLE = "not_idle"
    UNSTABLE_WARMUP = "unstable_warmup"
    BEGAN_ANEW = "began_anew"
    STOOD_STILL = "stood_still"
    CLIENT_BOUND = "client_bound"
    REQUESTS_LOST = "requests_lost"
    UNANSWERED = "unanswered"
    COUNTS_DIFFER = "counts_differ"
    NO_SERVER_COUNT = "no_server_count"
    TEXT_DIFFERS = "text_differs"
    CACHED_PROMPTS = "cached_prompts"
    APPROXIMATE_LENGTHS = "approximate_lengths"
    WRONG_LENGTHS = "wrong_lengths"
    UNSUSTAINABLE = "unsustainable"
    IN_FLIGHT_LIMIT = "in_flight_limit"
    ACCEPTANCE_DIFFERS = "acceptance_differs"


TEXTS = {
    RunWarning.NOT_IDLE: (
        "the server was not idle when this run began: after {seconds:.1f} s it still held requests of others "
        "or of the load before ({held})"
    ),
    RunWarning.UNSTABLE_WARMUP: "the rate had not settled when the warm-up's time was up",
    RunWarning.BEGAN_ANEW: (
        "the server stood still for {measured.stood_still_seconds:.1f} s in all, so the measured time began "
        "anew (restarts: {measured.restarts}); what came before counts as warm-up"
    ),
    RunWarning.STOOD_STILL: (
        "while it was measured the server stood still for {still[seconds]:.1f} s in all: requests were in "
        "flight, and for more than {still[limit_seconds]:.1f} s no token came"
    ),
    RunWarning.CLIENT_BOUND: "the client woke later than a token takes: this run measures the client",
    RunWarning.REQUESTS_LOST: "{lost} of {sent} requests failed, stopped short or timed out",
    RunWarning.UNANSWERED: (
        "failed whenever sent: {unanswered}; what is left is not the load that was asked for, and not ranked"
    ),
    RunWarning.COUNTS_DIFFER: (
        "the server counts {server} output tokens, its streams {stream}; the server's count is used"
    ),
    RunWarning.NO_SERVER_COUNT: "the server reports no token count: tokens are counted as chunks",
    RunWarning.TEXT_DIFFERS: (
        "the server counts {text[server]} tokens in {text[answers]} answers, its tokenizer {text[tokens]} in "
        "their texts"
    ),
    RunWarning.CACHED_PROMPTS: "{cached} of {salted} prompts came from the prefix cache, salt and all",
    RunWarning.APPROXIMATE_LENGTHS: (
        "the server takes no token ids, or tells none of its own: synthetic prompts are words, about as long"
    ),
    RunWarning.WRONG_LENGTHS: "the server counts {wrong[1]} tokens in a prompt of {wrong[0]} token ids",
    RunWarning.UNSUSTAINABLE: (
        "requests in flight grew from {flying[begin]} to {flying[end]} over the measured time: the server "
        "does not sustain this rate, and a longer run would show longer latencies"
    ),
    RunWarning.IN_FLIGHT_LIMIT: (
        "{limit} requests were in flight, the most there may be: the run ended, and those in flight failed"
    ),
    RunWarning.ACCEPTANCE_DIFFERS: (
        "{answers} tokens a forward pass by the answers, {metrics} by the server's counters"
    ),
}


def warn(which: RunWarning, **figures: object) -> str:
    """Return ``code: text`` with the figures filled in."""
    return f"{which}: {TEXTS[which].format(**figures)}"

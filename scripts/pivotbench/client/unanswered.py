"""What a run was to measure and never did: turns and prompts that failed whenever they were sent.

A prompt or a history that does not fit the server's context is refused every time. The rest of the run is
then shorter and easier work than was asked for, and its speed no answer to the study's question.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from pivotbench.client.record import RequestRecord

K = TypeVar("K", int, str)

# A prompt may be sent once in a run, and fail by chance; a turn is sent in every conversation.
LEAST_FAILURES_OF_A_PROMPT = 2


def unanswered(records: Iterable[RequestRecord]) -> list[str]:
    """Return each turn and, in turns that were answered, each prompt that failed whenever it was sent.

    ``records``: the measured ones; those we cut ourselves say nothing. Each is told with how often it was
    sent and with its first error.
    """
    ended = [record for record in records if record.status != "cut"]
    turns = _never_ok(_grouped((r.turn, r) for r in ended), 1)
    prompts = _never_ok(
        _grouped((r.prompt_id, r) for r in ended if r.turn not in turns), LEAST_FAILURES_OF_A_PROMPT
    )
    return [_told(f"turn {turn + 1} of the conversations", failed) for turn, failed in turns.items()] + [
        _told(f"prompt {prompt}", failed) for prompt, failed in prompts.items()
    ]


def _grouped(pairs: Iterable[tuple[K, RequestRecord]]) -> dict[K, list[RequestRecord]]:
    groups: dict[K, list[RequestRecord]] = {}
    for key, record in pairs:
        groups.setdefault(key, []).append(record)
    return groups


def _never_ok(groups: Mapping[K, Sequence[RequestRecord]], least: int) -> dict[K, Sequence[RequestRecord]]:
    return {
        key: records
        for key, records in groups.items()
        if len(records) >= least and not any(record.status == "ok" for record in records)
    }


def _told(what: str, failed: Sequence[RequestRecord]) -> str:
    return f"{what} ({len(failed)} times: {failed[0].error})"

"""Records of requests as the client keeps them, for tests of what is worked out from them."""

from __future__ import annotations

import dataclasses
from typing import Any

from pivotbench.client.record import RequestRecord


def record(**changes: Any) -> RequestRecord:
    """Four tokens, one each second from 2 to 5; sent at 1."""
    base = RequestRecord(
        workload="w",
        kind="text",
        concurrency=1,
        index=0,
        measured=True,
        prompt_id="p",
        status="ok",
        finish_reason="length",
        error=None,
        prompt_tokens=10,
        cached_tokens=0,
        output_tokens=4,
        stream_tokens=4,
        sent_seconds=1.0,
        first_token_seconds=2.0,
        end_seconds=5.0,
        ttft_seconds=1.0,
        tpot_seconds=1.0,
        e2e_seconds=4.0,
        chunk_seconds=[2.0, 3.0, 4.0, 5.0],
        chunk_tokens=[1, 1, 1, 1],
        draft_proposed=None,
        draft_accepted=None,
        verify_steps=None,
        accept_histogram=None,
        text="one two three four",
    )
    return dataclasses.replace(base, **changes)

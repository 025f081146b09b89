"""What the client reports is what the server did, by the server's own record: within 1 % or 1 ms."""

from __future__ import annotations

import dataclasses
import math

import pytest

from ground_truth import answers
from ground_truth.server import Schedule
from ground_truth.truth import TruthServer, load, reported_figures, true_figures
from pivotbench.client import connection
from pivotbench.engines.endpoints import Dialect

pytestmark = pytest.mark.alone

# A machine that stops for a moment between the client's look at the clock and its send moves one figure; not
# three times in a row.
ATTEMPTS = 3

STEADY = Schedule(ttft_seconds=0.1, gap_seconds=0.02)
MANY = Schedule(ttft_seconds=0.3, gap_seconds=0.1)


def errors(schedule: Schedule, dialect: Dialect, streams: int, tokens: int) -> dict[str, float]:
    """Return what the client gets wrong in the best of a few attempts."""
    wrong: dict[str, float] = {}
    for _ in range(ATTEMPTS):
        with TruthServer(schedule) as server:
            sent = load(server.url, dialect, streams=streams, requests=streams, tokens=tokens)
            truth = server.record()
        for record in sent.records:
            assert (record.status, record.error, record.output_tokens) == ("ok", None, tokens)
            assert record.text == answers.text(tokens)
        assert len(truth) == streams
        wrong = reported_figures(sent.records).errors(true_figures(truth))
        if not wrong:
            break
    return wrong


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-completions", "sglang-generate"])
def test_the_clock_is_true_at_one_stream(dialect: Dialect) -> None:
    assert errors(STEADY, dialect, streams=1, tokens=20) == {}


@pytest.mark.parametrize("dialect", ["openai-chat", "sglang-generate"])
def test_the_clock_is_true_at_16_streams(dialect: Dialect) -> None:
    assert errors(STEADY, dialect, streams=16, tokens=30) == {}


@pytest.mark.parametrize("dialect", ["openai-chat", "sglang-generate"])
def test_the_clock_is_true_at_256_streams(dialect: Dialect) -> None:
    assert errors(MANY, dialect, streams=256, tokens=10) == {}


@pytest.mark.parametrize(
    "shape",
    [{"chunks_per_send": 4}, {"tokens_per_chunk": 3}, {"cut": True}, {"ttft_seconds": 0.8}],
    ids=lambda shape: next(iter(shape)),
)
def test_bursts_fat_chunks_cut_characters_and_slow_starts_do_not_move_the_clock(
    shape: dict[str, int],
) -> None:
    schedule = dataclasses.replace(STEADY, **shape)
    assert errors(schedule, "openai-chat", streams=16, tokens=24) == {}


def test_a_client_that_stamps_late_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    true = connection.arrival_seconds
    monkeypatch.setattr(connection, "arrival_seconds", lambda *read: true(*read) + 0.005)
    assert errors(STEADY, "openai-chat", streams=16, tokens=10).keys() >= {"ttft_mean_ms", "ttft_median_ms"}


def test_a_client_that_looks_only_now_and_then_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    true = connection.arrival_seconds
    monkeypatch.setattr(connection, "arrival_seconds", lambda *read: math.ceil(true(*read) / 0.03) * 0.03)
    assert errors(STEADY, "openai-chat", streams=16, tokens=10).keys() >= {"itl_median_ms"}

"""A cluster is asked for the time that the study itself says a cell may take, by what the client keeps to."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from pivotbench.client.schedule import Schedule
from pivotbench.cluster.walltime import cell_minutes, stage_minutes
from pivotbench.durations import loads, measured_seconds
from pivotbench.pace import (
    IDLE_WAIT_SECONDS,
    MOST_RESTARTS,
    STALL_SECONDS,
    open_loop,
    standstill_seconds,
)
from pivotbench.results import STAGES
from pivotbench.study import Study

DATA: dict[str, Any] = {
    "name": "walltime",
    "engine": "sglang",
    "model": "org/model",
    "backends": {"a": {}, "b": {}},
    "smoke": {"max_tokens": 50, "repeats": 2, "prompts": [{"ask": "What is 2+2?"}]},
    "throughput": {
        "seconds": 60,
        "min_requests": 8,
        "workloads": {
            "random": {
                "kind": "synthetic",
                "prompt_tokens": [1000, 2000],
                "output_tokens": 280,
                "concurrency": [1, 16],
            }
        },
    },
    "decision": {"metric": {"workloads": {"random": 1}, "concurrency": 1}},
    "hosts": {"gpus": 1, "launch_timeout_seconds": 600},
}


def minutes(**sections: dict[str, Any]) -> dict[str, int]:
    data = {**DATA, **{name: {**DATA[name], **section} for name, section in sections.items()}}
    study = Study.model_validate(data)
    return {stage: stage_minutes(study, stage) for stage in STAGES}


def test_a_launch_gets_its_timeout_and_a_minute() -> None:
    assert minutes()["launch"] == 11
    assert minutes(hosts={"launch_timeout_seconds": 1800})["launch"] == 31


def test_every_load_adds_its_wait_its_warm_up_its_measured_time_its_last_answer_and_its_restarts() -> None:
    # An answer: 280 tokens at 0.1 s, after at most 2,000 tokens of a prompt at 1 ms, take 30 s.
    # One stream: 8 answers outlast the measured time; sixteen streams: one answer each does not.
    one_stream, sixteen_streams = (IDLE_WAIT_SECONDS + load for load in (60 + 240 + 60, 60 + 60 + 60))
    # A standstill before it is a timeout, the answer after it, and the measured time again.
    again = MOST_RESTARTS * (STALL_SECONDS + 30 + 240 + STALL_SECONDS + 30 + 60)
    whole = one_stream + sixteen_streams + again + STALL_SECONDS + 60
    assert minutes()["throughput"] == math.ceil(whole / 60)


@pytest.mark.parametrize(
    ("line", "tokens"),
    [
        ({"prompt": "12 " * 200_000}, 600_000),
        ({"messages": [{"role": "system", "content": "字" * 20}, {"role": "user", "content": "ab"}]}, 62),
        ({"system": "s" * 10, "turns": ["t" * 20, "u" * 30, "v" * 40]}, 100 + 2 * 280),
    ],
)
def test_a_long_text_is_given_the_time_of_a_token_a_byte_and_of_the_answers_before_its_last_turn(
    line: dict[str, Any], tokens: int, tmp_path: Path
) -> None:
    lines = [{"id": "short", "prompt": "Hello"}, {"id": "long", **line}]
    (tmp_path / "prompts.jsonl").write_text("\n".join(map(json.dumps, lines)))
    same = {"output_tokens": 280, "concurrency": [1]}
    text = {"kind": "text", "prompts": str(tmp_path / "prompts.jsonl"), **same}
    synthetic = {"kind": "synthetic", "prompt_tokens": tokens, **same}
    as_text, as_synthetic = (
        Study.model_validate(
            {**DATA, "throughput": {"min_requests": 64, "seconds": 60, "workloads": {"random": workload}}}
        )
        for workload in (text, synthetic)
    )
    assert list(loads(as_text)) == list(loads(as_synthetic))
    assert cell_minutes(as_text) == cell_minutes(as_synthetic)


def test_an_open_loop_lasts_until_its_requests_have_come() -> None:
    workload = {"kind": "synthetic", "prompt_tokens": 100, "output_tokens": 300, "rate": [0.02]}
    decision = {"metric": {"workloads": {"random": 1}, "concurrency": 1}}
    both = DATA["throughput"]["workloads"] | {"slow": workload}
    grown = minutes(throughput={"workloads": both}, decision=decision)
    assert grown["throughput"] - minutes()["throughput"] > (60 + 8 / 0.02 + 60) / 60


@pytest.mark.parametrize("rate", [0.02, 0.5, 20.0])
@pytest.mark.parametrize("min_requests", [1, 8, 100])
def test_no_schedule_of_arrivals_outlasts_its_estimate(rate: float, min_requests: int) -> None:
    told = open_loop(60, min_requests, rate, answer=30)
    for seed in range(50):
        drawn = Schedule.of(rate, f"study/r{seed}/text", 60, min_requests)
        assert drawn.end_seconds - drawn.begin_seconds >= 60
        # Besides the wait for an idle server, the warm-up, and the last answers.
        assert drawn.end_seconds <= told.most_seconds - IDLE_WAIT_SECONDS - 60 - 2 * 30
        assert drawn.end_seconds <= told.again_seconds - STALL_SECONDS - 2 * 30


def test_more_questions_and_their_repeats_are_given_more_time() -> None:
    many = [{"ask": f"What is {n}+{n}?"} for n in range(100)]
    assert minutes(smoke={"prompts": many})["smoke"] == -(-(100 * 2 * 50 * 0.1 + STALL_SECONDS + 60) // 60)
    assert minutes(smoke={"prompts": many, "repeats": 4})["smoke"] == (100 * 4 * 50 * 0.1 + 120) // 60 + 1


def test_a_long_question_is_given_the_time_to_read_it() -> None:
    grown = minutes(smoke={"prompts": [{"ask": "7" * 60_000}]})
    assert grown["smoke"] - minutes()["smoke"] == 2 * 60_000 / 1000 / 60


def test_continuations_are_given_time_for_a_request_a_token(tmp_path: Path) -> None:
    lines = [f'{{"id": "c{n}", "prompt": "The sun", "continuation": " rises"}}' for n in range(150)]
    (tmp_path / "texts.jsonl").write_text("\n".join(lines))
    grown = minutes(smoke={"continuations": str(tmp_path / "texts.jsonl")})
    assert grown["smoke"] - minutes()["smoke"] == 150 * 16 * 0.1 / 60


def test_what_is_measured_counts_the_requests_that_a_study_wants() -> None:
    study = Study.model_validate(DATA)
    assert measured_seconds(study) == (60 + 60, 240 + 60)
    assert all(load.most_seconds > load.measured_most_seconds for load in loads(study))
    assert cell_minutes(study) == sum(minutes().values())


def test_a_silence_is_long_by_the_windows_of_the_study_and_by_what_a_prompt_takes_to_read() -> None:
    assert standstill_seconds(30, 5, prompt_tokens=0) == pytest.approx(4), "two thirds of a window"
    assert standstill_seconds(1, 5, prompt_tokens=0) == 1, "any machine may pause for less than a second"
    assert standstill_seconds(30, 5, prompt_tokens=8000) == pytest.approx(4 + 8)

"""A cluster is asked for the time that the study itself says a cell may take."""

from __future__ import annotations

from typing import Any

import pytest

from pivotbench.cluster.walltime import stage_minutes
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
                "prompt_tokens": 100,
                "output_tokens": 300,
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


def test_every_load_adds_its_warm_up_its_measured_time_and_its_last_answer() -> None:
    # One stream: 8 answers of 30 s outlast the measured time; sixteen streams: one answer each does not.
    one_stream, sixteen_streams = 60 + 240 + 60, 60 + 60 + 60
    assert minutes()["throughput"] == (one_stream + sixteen_streams + 60) / 60


def test_an_open_loop_lasts_until_its_requests_have_come() -> None:
    workload = {"kind": "synthetic", "prompt_tokens": 100, "output_tokens": 300, "rate": [0.02]}
    decision = {"metric": {"workloads": {"random": 1}, "concurrency": 1}}
    both = DATA["throughput"]["workloads"] | {"slow": workload}
    grown = minutes(throughput={"workloads": both}, decision=decision)
    assert grown["throughput"] - minutes()["throughput"] == pytest.approx((60 + 8 / 0.02 + 60) / 60, abs=1)


def test_more_questions_are_given_more_time() -> None:
    many = [{"ask": f"What is {n}+{n}?"} for n in range(100)]
    assert minutes(smoke={"prompts": many})["smoke"] == (100 * 2 * 50 * 0.1 + 60) / 60 // 1 + 1

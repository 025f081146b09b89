"""The default study is what a newcomer needs: real choices, a real elimination, prompts of both kinds."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import pytest

from pivotbench.engines import llamacpp_serve
from pivotbench.engines.catalogue import FlagCatalogue, FlagSpec
from pivotbench.prompt_files import read_prompts
from pivotbench.study import check_flags, load_study

CONFIG = Path(__file__).parents[2] / "config"
STUDY = load_study(CONFIG / "config.yaml")


def catalogue() -> FlagCatalogue:
    """Return the flags our llama.cpp server declares, without its engine."""
    data = llamacpp_serve.catalogue(llamacpp_serve.build_parser(), "test")
    flags = [
        FlagSpec(
            **{
                **flag,
                "aliases": tuple(flag["aliases"]),
                "choices": flag["choices"] and tuple(flag["choices"]),
            }
        )
        for flag in data["flags"]
    ]
    return FlagCatalogue(data["engine"], data["version"], tuple(flags))


def test_the_engine_takes_every_flag_of_it() -> None:
    check_flags(STUDY, {None: catalogue()}, {"model", "alias", "host", "port"})


def test_four_backends_work_and_one_cannot_launch() -> None:
    quantized = [
        n for n, f in STUDY.configurations.items() if "cache-type-v" in f and f["flash-attn"] == "off"
    ]
    assert quantized == ["kv-q8-flash-off"]
    assert len(STUDY.configurations) >= 5


def test_three_speculative_configurations_run_on_the_winner() -> None:
    assert len(STUDY.speculations) >= 3
    assert STUDY.speculative_base is None


def test_both_kinds_of_text_are_measured_alone_and_together() -> None:
    workloads = STUDY.throughput.workloads
    assert {name: w.concurrency for name, w in workloads.items()} == {"repetitive": [1, 4], "free": [1, 4]}
    assert STUDY.serve["parallel"] == 4


def test_the_margin_is_as_wide_as_the_noise_and_rounds_are_few() -> None:
    assert STUDY.decision.margin == 0.10
    assert STUDY.decision.rounds.max <= 3


@pytest.mark.parametrize(
    ("name", "least"), [("repetitive", 24), ("free", 24), ("code", 16), ("question-answering", 16)]
)
def test_a_prompt_file_holds_enough_prompts(name: str, least: int) -> None:
    file = CONFIG / "prompts" / f"{name}.jsonl"
    assert len(read_prompts(file)) >= least


def test_answers_to_repetitive_prompts_can_copy_from_them() -> None:
    """Compressed, such a prompt shrinks well; an open question does not."""

    def ratios(name: str) -> list[float]:
        lines = (CONFIG / "prompts" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        prompts = [json.loads(line)["prompt"].encode() for line in lines]
        return [len(zlib.compress(prompt, 9)) / len(prompt) for prompt in prompts]

    assert max(ratios("repetitive")) < 0.85
    assert min(ratios("free")) > 0.9

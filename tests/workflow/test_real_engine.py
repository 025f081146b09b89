"""The real engine, end to end: launched, asked, measured, decided, and its numbers found again by hand."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pivotbench.study import load_study
from workflow.campaign import ROOT, Folder

pytestmark = [pytest.mark.engine, pytest.mark.alone]


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """Parts of the default study, shortened to one round of moments."""
    path = tmp_path_factory.mktemp("real")
    default = load_study(ROOT / "config" / "config.yaml").source
    assert default is not None
    study: dict[str, Any] = copy.deepcopy(default.data)
    study["name"] = "small"
    study["backends"] = {name: study["backends"][name] for name in ("flash-on", "kv-q8-flash-off")}
    study["speculative"] = {"ngram-simple": study["speculative"]["ngram-simple"]}
    study["smoke"]["continuations"] = str(ROOT / "config" / "prompts" / "continuations.jsonl")
    study["throughput"] |= {"seconds": 1, "min_requests": 2}
    study["throughput"]["workloads"] = {
        "text": study["throughput"]["workloads"]["repetitive"]
        | {
            "prompts": str(ROOT / "config" / "prompts" / "copying.jsonl"),
            "output_tokens": 48,
            "concurrency": [1],
        }
    }
    study["decision"] |= {
        "metric": {"workloads": {"text": 1}, "concurrency": 1},
        "rounds": {"min": 1, "max": 1},
    }
    folder = Folder(path)
    folder.write(study)
    run = folder.snakemake("all", real_cache=True)
    assert run.code == 0, run.text
    return folder


def decision_of(folder: Folder) -> dict[str, Any]:
    decision: dict[str, Any] = json.loads((folder.results / "decision.json").read_text())
    return decision


def test_the_healthy_backend_wins_with_a_command_to_paste(campaign: Folder) -> None:
    decision = decision_of(campaign)
    assert decision["winner"] == "flash-on"
    assert "--flash-attn on" in decision["launch_command"]


def test_the_doomed_backend_is_eliminated_by_the_engines_own_words(campaign: Folder) -> None:
    [entry] = decision_of(campaign)["eliminated"]
    assert (entry["configuration"], entry["stage"], entry["code"]) == (
        "kv-q8-flash-off",
        "launch",
        "flag_conflict",
    )
    assert any("requires flash_attn" in line for line in entry["evidence"])


def test_speculation_keeps_the_text_of_the_real_engine(campaign: Folder) -> None:
    phases = {part["phase"]: part for part in decision_of(campaign)["agreement"]}
    assert phases["backends"]["set_aside"] == []
    [drafting] = [
        row
        for row in phases["speculative"]["configurations"]
        if row["configuration"].endswith("ngram-simple")
    ]
    assert drafting["greedy_text"]["verdict"] == "same", drafting["greedy_text"]["why"]
    assert drafting["distance_nats"] == 0, "one and the same backend"


def test_speculation_has_a_verdict_and_an_acceptance_length(campaign: Folder) -> None:
    [entry] = decision_of(campaign)["speculation"]
    assert entry["configuration"] == "flash-on+ngram-simple"
    assert entry["draft_proposed"] > 0
    assert entry["acceptance_length"] > 1.0
    assert entry["verdict"] == "undecided", "one round decides nothing"


def test_the_numbers_are_found_again_in_the_raw_requests(campaign: Folder) -> None:
    cell = campaign.cell("flash-on")
    [run] = json.loads((cell / "throughput.json").read_text())["runs"]
    rows = pd.read_parquet(cell / "requests.parquet")
    ok = rows[rows.measured & (rows.status == "ok")]
    tpot = (ok.e2e_seconds - ok.ttft_seconds) / (ok.output_tokens - 1)
    assert tpot.median() == pytest.approx(run["tpot_seconds"]["p50"])
    for window in run["windows"]:
        tokens = sum(
            count
            for seconds, counts in zip(rows.chunk_seconds, rows.chunk_tokens, strict=True)
            for at, count in zip(seconds, counts, strict=True)
            if window["begin_seconds"] < at <= window["end_seconds"]
        )
        length = window["end_seconds"] - window["begin_seconds"]
        assert tokens / length == pytest.approx(window["output_tok_s"], rel=0.02)
    table = pd.read_parquet(campaign.results / "measurements.parquet")
    stored = table[(table.configuration == "flash-on") & (table.phase == "backends")].output_tok_s
    assert list(stored) == pytest.approx([w["output_tok_s"] for w in run["windows"]])


def test_nothing_of_the_engine_is_left(campaign: Folder) -> None:
    assert not list((Path(campaign.path) / "locks" / "launches").iterdir())


def test_the_server_counts_the_acceptance_that_its_answers_report(campaign: Folder) -> None:
    cell = campaign.cell("flash-on+ngram-simple", phase="speculative")
    [run] = json.loads((cell / "throughput.json").read_text())["runs"]
    counted = run["acceptance"]["metrics"]
    assert counted["source"] == "metrics" and counted["accepted"] > 0
    assert counted["answers_share"] == 1.0, "one request at a time: none is cut"
    assert counted["length"] == pytest.approx(counted["answers_length"])
    assert counted["differs"] is False


def test_the_hardware_is_read_throughout_the_measured_time(campaign: Folder) -> None:
    cell = campaign.cell("flash-on")
    data = json.loads((cell / "throughput.json").read_text())
    [run] = data["runs"]
    rows = pd.read_parquet(cell / data["telemetry_file"]["path"])
    within = rows[rows.seconds.between(run["windows"][0]["begin_seconds"], run["windows"][-1]["end_seconds"])]
    assert len(within) == run["telemetry"]["samples"] >= 1
    assert within.cpu_percent.mean() == pytest.approx(run["telemetry"]["host"]["cpu_percent"]["mean"])
    assert rows.server_cpu_percent.max() > 1

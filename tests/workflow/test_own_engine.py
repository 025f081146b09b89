"""An engine that its user brings: the worked example of docs/engines.md runs through a campaign.

The server is the scripted one under vLLM's name, with its command line, paths, counters and log lines.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import scripted
from pivotbench.engines import get_engine, own_engine
from pivotbench.engines.base import Engine
from pivotbench.errors import UserError
from pivotbench.installations import Installation, flags_file
from workflow.campaign import ROOT, Folder

EXAMPLE = ROOT / "docs" / "examples" / "vllm.py"
DRAFTS = '{"method": "ngram", "num_speculative_tokens": 4}'
STAGES = ("launch", "smoke", "throughput", "teardown")


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The stage files of a speculative cell, by stage, and the decision."""
    folder = Folder.create(tmp_path_factory.mktemp("own") / "campaign")
    place = folder.path / "config" / "engines" / "vllm.py"
    place.parent.mkdir(parents=True)
    shutil.copy2(EXAMPLE, place)
    study = folder.study() | {
        "engine": "vllm",
        "backends": {"eager": {"enforce-eager": True, "max-num-seqs": 8}},
        "speculative": {"ngram": {"speculative-config": DRAFTS, "script-acceptance": ["2.5"]}},
    }
    study["smoke"]["continuations"] = "continuations.jsonl"
    text = '{"id": "count", "prompt": "One, two,", "continuation": " three"}'
    (folder.path / "continuations.jsonl").write_text(text + "\n")
    study["serve"].pop("script-events")
    folder.write(study)
    run = folder.snakemake("results/small/decision.json")
    assert run.code == 0, run.text
    assert not folder.snakemake("results/small/decision.json", "--dry-run").planned
    files = folder.cell("eager+ngram", phase="speculative")
    told = {stage: json.loads((files / f"{stage}.json").read_text()) for stage in STAGES}
    yield told | {"decision": json.loads((folder.results / "decision.json").read_text()), "folder": folder}


def test_all_four_stages_of_the_example_succeed_on_one_server(cell: dict[str, Any]) -> None:
    assert [cell[stage]["status"] for stage in STAGES] == ["ok"] * 4
    assert len({cell[stage]["server"]["launch_id"] for stage in STAGES}) == 1
    assert cell["teardown"]["verdict"] == "released"


def test_its_launch_is_the_documented_command_and_tells_what_the_log_says(cell: dict[str, Any]) -> None:
    launch = cell["launch"]
    assert "vllm.entrypoints.openai.api_server --model" in cell["decision"]["launch_command"]
    assert launch["environment"]["engine"] == "vllm"
    assert launch["environment"]["engine_version"] == "0.11.0"
    assert launch["server"]["effective"]["max-num-seqs"] == 8
    assert launch["server"]["effective"]["cache-tokens"] == 698_890
    phases = {phase["name"]: phase["seconds"] for phase in launch["phases"]}
    assert phases == {"weights": 4.21, "cuda_graphs": 9.0, "warmup": 12.5}


def test_its_answers_are_judged_and_its_speed_and_drafts_are_counted(cell: dict[str, Any]) -> None:
    assert cell["smoke"]["prompts"][0]["expectation"]["met"]
    [run] = cell["throughput"]["runs"]
    assert run["acceptance"]["length"] == pytest.approx(2.5, abs=0.7)
    assert not [warning for warning in run["warnings"] if warning.startswith("counts_differ")]
    [speculation] = cell["decision"]["speculation"]
    assert speculation["acceptance_length"] is not None


def test_what_the_example_leaves_out_is_missing_and_said(cell: dict[str, Any]) -> None:
    [followed] = cell["smoke"]["continuations"]
    assert followed["token_logprobs"] is None
    assert "engine vllm is not asked for log probabilities" in followed["why"]
    [run] = cell["throughput"]["runs"]
    assert run["warmup"]["idle_wait_seconds"] is None


def test_a_changed_file_makes_its_cells_anew(cell: dict[str, Any]) -> None:
    folder: Folder = cell["folder"]
    file = folder.path / "config" / "engines" / "vllm.py"
    before = file.read_text()
    file.write_text(before.replace('"--host", "127.0.0.1"', '"--host", "127.0.0.2"'))
    try:
        planned = folder.snakemake("results/small/decision.json", "--dry-run").planned
    finally:
        file.write_text(before)
    assert {stage: planned[stage] for stage in STAGES} == dict.fromkeys(STAGES, 1), planned
    assert not folder.snakemake("results/small/decision.json", "--dry-run").planned


@pytest.fixture
def engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of one's own engines, in a working directory of the test's."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "config" / "engines"
    folder.mkdir(parents=True)
    return folder


def test_a_file_of_ones_own_is_an_engine_like_any_other(engines: Path) -> None:
    shutil.copy2(EXAMPLE, engines / "vllm.py")
    engine = get_engine("vllm")
    assert isinstance(engine, Engine) and engine is get_engine("vllm")
    assert engine.reserved_flags == {"model", "host", "port", "served-model-name"}
    assert engine.installed_version(scripted.PYTHON) == "0.11.0"
    with pytest.raises(UserError, match="did you mean 'vllm'"):
        get_engine("vlm")


def test_a_file_counts_for_its_own_engine_alone(engines: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIVOTBENCH_CACHE", str(engines / "cache"))
    installed = Installation(str(scripted.PYTHON))
    lists, contents = set(), set()
    for more in ("", "# another way to read the log\n"):
        for name in ("vllm", "sglang"):
            (engines / f"{name}.py").write_text(EXAMPLE.read_text() + more)
        lists.add(flags_file(get_engine("vllm"), installed, {}))
        contents.add(own_engine("vllm")["engine_sha256"])
        assert own_engine("sglang") == own_engine("llamacpp") == own_engine("none-such") == {}
    assert len(lists) == len(contents) == 2 and None not in lists


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import no_such_module", "cannot be loaded .ModuleNotFoundError"),
        ("ENGINE = 3", "no ENGINE of name 'mine'"),
        (EXAMPLE.read_text(), "no ENGINE of name 'mine'"),
    ],
)
def test_a_file_that_is_no_engine_is_refused_by_name(engines: Path, text: str, says: str) -> None:
    (engines / "mine.py").write_text(text)
    with pytest.raises(UserError, match=f"config/engines/mine.py: .*{says}"):
        get_engine("mine")


@pytest.mark.parametrize("name", ["../mine", "", "Mine"])
def test_a_name_that_is_no_name_loads_nothing(engines: Path, name: str) -> None:
    (engines / "Mine.py").write_text("raise SystemExit")
    (engines.parent / "mine.py").write_text("raise SystemExit")
    with pytest.raises(UserError, match="unknown engine"):
        get_engine(name)

"""A stage file is evidence only with the keys that its readers rely on; else one line says what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from factory import GARBAGE, UNSUPPORTED, Cell, write_cell
from pivotbench.errors import UserError
from pivotbench.results import STAGES
from pivotbench.stage_files import load_stage, read_stage

Change = Callable[[dict[str, Any]], object]

DAMAGED: list[tuple[str, str, Change, str]] = [
    ("a schema alone", "throughput", lambda d: [d.pop(k) for k in list(d) if k != "schema"], "status: field"),
    ("another version", "launch", lambda d: d.update(schema="pivotbench/launch/99"), "with the schema"),
    ("another stage", "smoke", lambda d: d.update(schema="pivotbench/launch/1"), "with the schema"),
    ("a made-up status", "smoke", lambda d: d.update(status="good"), "status: input should be"),
    ("no fingerprint", "smoke", lambda d: d.pop("fingerprint"), "fingerprint: field required"),
    ("a failure without reason", "smoke", lambda d: d.update(status="failed"), "failed without a reason"),
    ("half a reason", "smoke", lambda d: d.update(status="failed", reason={}), "reason.code: field"),
    ("no cell", "throughput", lambda d: d.pop("cell"), "cell: field required"),
    ("a time that is none", "launch", lambda d: d.update(started="soon"), "started: "),
    ("a time without zone", "launch", lambda d: d.update(ended="2026-03-02T09:00:00"), "without its zone"),
    ("no environment", "launch", lambda d: d.pop("environment"), "environment: field required"),
    ("a server without id", "launch", lambda d: d.update(server={}), "server.launch_id: field"),
    ("runs a number", "throughput", lambda d: d.update(runs=3), "runs: input should be"),
    ("an empty run", "throughput", lambda d: d.update(runs=[{}]), "runs.0.workload: field"),
    (
        "a window without speed",
        "throughput",
        lambda d: d["runs"][0]["windows"][1].clear(),
        "window: field",
    ),
    ("a rate without its figures", "throughput", lambda d: at_a_rate(d).pop("open_loop"), "open_loop: field"),
    (
        "a rate that tells not if it was sustained",
        "throughput",
        lambda d: at_a_rate(d)["open_loop"].pop("unsustainable"),
        "runs.0.open_loop.unsustainable: field",
    ),
    (
        "no p99 at a rate",
        "throughput",
        lambda d: at_a_rate(d)["ttft_seconds"].pop("p99"),
        "0.ttft_seconds.p99",
    ),
    (
        "lost uncounted",
        "throughput",
        lambda d: at_a_rate(d)["requests"].pop("short"),
        "requests.short: field",
    ),
    ("prompts without texts", "smoke", lambda d: d.update(prompts=[{}]), "prompts.0.ask: field"),
]


def at_a_rate(data: dict[str, Any]) -> dict[str, Any]:
    """Make the first run one at a rate, and return it."""
    run: dict[str, Any] = data["runs"][0]
    flying = {"begin": 1, "end": 1, "peak": 2, "mean": 1.0}
    figures = {"arrivals_per_second": 2.0, "completed_per_second": None, "in_flight": flying}
    run |= {"concurrency": None, "rate_per_second": 2, "open_loop": {**figures, "unsustainable": False}}
    return run


def write(root: Path) -> Path:
    return write_cell(root, "s", Cell("backends", "a", 1, {("chat", 1): 100.0}))


def test_what_the_stages_write_can_be_read(tmp_path: Path) -> None:
    folders = [write(tmp_path)]
    for stage, reason in (("launch", UNSUPPORTED), ("smoke", GARBAGE)):
        folders.append(write_cell(tmp_path, "s", Cell("backends", stage, 1, failed=stage, reason=reason)))
    assert all(load_stage(folder / f"{stage}.json")["status"] for folder in folders for stage in STAGES)


def test_a_run_at_a_rate_can_be_read_and_one_that_gave_up(tmp_path: Path) -> None:
    path = write(tmp_path) / "throughput.json"
    content = json.loads(path.read_text())
    run = at_a_rate(content)
    path.write_text(json.dumps(content))
    assert load_stage(path)["runs"][0]["rate_per_second"] == 2
    run["open_loop"] = None
    path.write_text(json.dumps(content))
    assert read_stage(path) is not None


@pytest.mark.parametrize(("stage", "change", "words"), [c[1:] for c in DAMAGED], ids=[c[0] for c in DAMAGED])
def test_a_damaged_stage_file_is_one_line_and_no_evidence(
    tmp_path: Path, stage: str, change: Change, words: str
) -> None:
    path = write(tmp_path) / f"{stage}.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(UserError) as caught:
        load_stage(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert words in str(caught.value) and "\n" not in str(caught.value)
    assert read_stage(path) is None


@pytest.mark.parametrize("text", ["", "{", "[1]", "[" * 100_000], ids=["empty", "cut off", "a list", "deep"])
def test_what_is_no_object_is_no_evidence(tmp_path: Path, text: str) -> None:
    path = write(tmp_path) / "smoke.json"
    path.write_text(text)
    assert read_stage(path) is None
    path.unlink()
    with pytest.raises(UserError, match=r"smoke\.json: missing$"):
        load_stage(path)

"""Stored results are judged by what they say, once, as they stood when the run began."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from pivotbench.machine.host import difference
from pivotbench.staleness import Judge

ENVIRONMENT = {"engine": "e", "engine_version": "1", "cpu_model": "c", "cores": 2, "model_revision": None}


def stored(root: Path, **changes: Any) -> Path:
    content = {
        "schema": "pivotbench/launch/1",
        "status": "ok",
        "reason": None,
        "fingerprint": "f",
        "cell": {"study": "s", "phase": "backends", "configuration": "a", "round": 1},
        "started": "2026-03-02T09:00:00.000+00:00",
        "ended": "2026-03-02T09:00:02.000+00:00",
        "server": None,
        "environment": ENVIRONMENT,
    }
    path = root / "backends" / "a" / "r1" / "launch.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content | changes))
    return path


def failed(kind: str) -> dict[str, Any]:
    return {"status": "failed", "reason": {"code": "timeout", "kind": kind, "message": ""}}


def test_a_result_of_the_same_settings_and_machine_holds(tmp_path: Path) -> None:
    assert Judge(ENVIRONMENT, gpus=0).stale(stored(tmp_path), "f") is None


def test_a_missing_result_is_not_stale(tmp_path: Path) -> None:
    assert Judge(ENVIRONMENT, gpus=0).stale(tmp_path / "launch.json", "f") is None


def test_other_settings_an_unreadable_file_and_another_machine_make_it_stale(tmp_path: Path) -> None:
    assert "settings" in str(Judge(ENVIRONMENT, gpus=0).stale(stored(tmp_path), "g"))
    other = ENVIRONMENT | {"engine_version": "2"}
    assert "engine version was 1, is 2" in str(Judge(other, gpus=0).stale(stored(tmp_path), "f"))
    half = tmp_path / "half.json"
    half.write_text('{"schema": "pivotbench/la')
    assert "readable" in str(Judge(ENVIRONMENT, gpus=0).stale(half, "f"))


def test_where_servers_run_elsewhere_the_stored_environment_stands(tmp_path: Path) -> None:
    assert Judge(None, gpus=0).stale(stored(tmp_path), "f") is None


def test_a_processor_does_not_matter_to_a_server_on_gpus(tmp_path: Path) -> None:
    gpu = {"gpus": [{"name": "H200"}], "driver": "1"}
    path = stored(tmp_path, environment=ENVIRONMENT | gpu)
    present = ENVIRONMENT | gpu | {"cpu_model": "another"}
    assert Judge(present, gpus=1).stale(path, "f") is None
    assert "driver" in str(
        Judge(present | {"driver": "2"}, gpus=1).stale(stored(tmp_path, environment=ENVIRONMENT | gpu), "f")
    )


def test_transient_failures_are_tried_again_and_deterministic_ones_on_demand(tmp_path: Path) -> None:
    assert Judge(None, gpus=0).stale(stored(tmp_path, **failed("transient")), "f")
    path = stored(tmp_path, **failed("deterministic"))
    assert Judge(None, gpus=0).stale(path, "f") is None
    assert Judge(None, gpus=0, retry_all=True).stale(path, "f")


def test_what_this_run_made_is_not_judged_again(tmp_path: Path) -> None:
    judge = Judge(None, gpus=0)
    path = stored(tmp_path, **failed("transient"))
    assert judge.stale(path, "f")
    stored(tmp_path, **failed("transient"))
    os.utime(path, ns=(1, 1))
    assert judge.stale(path, "f") is None, "or the same run would try for ever"


def test_another_image_or_other_packages_are_another_engine() -> None:
    stored = ENVIRONMENT | {"image": "sha256:1", "packages": {"torch": "2.11.0"}}
    assert difference(stored, stored, gpus=0) is None
    assert difference(stored, stored | {"image": "sha256:2"}, gpus=0) == "image was sha256:1, is sha256:2"
    assert "torch" in str(difference(stored, stored | {"packages": {"torch": "2.14.1"}}, gpus=0))


def test_results_from_before_packages_were_recorded_still_hold() -> None:
    assert difference(ENVIRONMENT, ENVIRONMENT | {"packages": {"torch": "2.11.0"}}, gpus=0) is None


def test_a_skipped_stage_holds_only_while_an_earlier_one_is_not_well(tmp_path: Path) -> None:
    reason = {"code": "server_died", "kind": "transient", "message": ""}
    skipped = stored(tmp_path, schema="pivotbench/smoke/1", status="skipped", reason=reason)
    smoke = skipped.rename(skipped.with_name("smoke.json"))
    stored(tmp_path, **failed("deterministic"))
    assert Judge(ENVIRONMENT, gpus=0).stale(smoke, "f") is None
    stored(tmp_path)
    assert "no longer so" in str(Judge(ENVIRONMENT, gpus=0).stale(smoke, "f"))


@pytest.mark.parametrize("elsewhere", ["backends/a/r2", "backends/b/r1", "speculative/a/r1"])
def test_a_copy_of_another_cell_is_no_result_of_this_one(tmp_path: Path, elsewhere: str) -> None:
    copied = tmp_path / elsewhere / "launch.json"
    copied.parent.mkdir(parents=True)
    shutil.copy(stored(tmp_path), copied)
    assert Judge(ENVIRONMENT, gpus=0).stale(copied, "f") == "it is a copy of backends/a/r1"


def test_a_study_renamed_with_its_folder_keeps_its_results(tmp_path: Path) -> None:
    stored(tmp_path / "results" / "s")
    renamed = (tmp_path / "results" / "s").rename(tmp_path / "results" / "renamed")
    assert Judge(ENVIRONMENT, gpus=0).stale(renamed / "backends" / "a" / "r1" / "launch.json", "f") is None

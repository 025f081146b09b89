"""What is known beforehand is said when the study is read and at the launch; a study may have it refused."""

from __future__ import annotations

import json

from workflow.campaign import Folder

DOOMED = {"moe-runner-backend": "flashinfer_cutedsl", "quantization": "fp8"}


def test_what_is_expected_to_fail_is_tried_unless_the_study_refuses_it(fresh: Folder) -> None:
    study = fresh.study()
    study["backends"] = {"good": {"attention-backend": "fa3"}, "doomed": DOOMED}
    del study["speculative"]
    fresh.write(study | {"preflight": "refuse"})
    run = fresh.snakemake("all")
    assert run.code == 0, run.text
    assert "doomed r1: launch: preflight: fails: flashinfer_cutedsl serves NVFP4 alone" in run.text
    launch = json.loads((fresh.cell("doomed") / "launch.json").read_text())
    assert launch["reason"]["code"] == "preflight_refused"
    assert launch["preflight"]["findings"][0]["id"] == "moe-cutedsl-other-quantization"
    assert json.loads((fresh.cell("doomed") / "teardown.json").read_text())["status"] == "skipped"
    decision = json.loads((fresh.results / "decision.json").read_text())
    assert [e["code"] for e in decision["eliminated"]] == ["preflight_refused"]
    assert "would fail to launch" in (fresh.results / "report.html").read_text()
    again = fresh.snakemake("all")
    assert "Nothing to be done" in again.text
    assert "warning: study.yaml:" in again.text, "it is said whenever the study is read"

    fresh.write(study)
    planned = fresh.snakemake("all", "--dry-run")
    assert "no longer refuses" in planned.text
    assert planned.planned["launch"] == 1


def test_what_the_engine_refuses_by_itself_stops_the_run_before_any_launch(fresh: Folder) -> None:
    study = fresh.study()
    study["speculative"]["ngram"]["speculative-algorithm"] = "EAGLE"
    fresh.write(study)
    run = fresh.snakemake("all")
    assert run.code != 0
    assert "speculative.ngram.speculative-num-draft-tokens: " in run.text
    assert "[steps-missing]" in run.text
    assert not list(fresh.results.glob("backends/*/r1/launch.json"))

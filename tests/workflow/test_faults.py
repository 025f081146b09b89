"""Whatever a server does, the campaign goes on, says what happened, and ends well."""

from __future__ import annotations

import json

import scripted
from workflow.campaign import DECISION, Folder


def test_timeouts_deaths_and_leaks_are_results(fresh: Folder) -> None:
    with scripted.PortHolder() as holder:
        study = fresh.study()
        study["backends"] = {
            "good": {"attention-backend": "fa3"},
            "never-ready": {"attention-backend": "fa3", "script": ["hang-launch"]},
            "dies": {"attention-backend": "fa3", "script": ["die-after=4"]},
            "leaks": {
                "attention-backend": "fa3",
                "script": [f"keep-port={holder.path}"],
                "script-token-seconds": 0.12,
            },
        }
        del study["speculative"]
        study["hosts"]["launch_timeout_seconds"] = 4
        fresh.write(study)
        run = fresh.snakemake(DECISION)
    assert run.code == 0, run.text

    def reason(configuration: str, stage: str) -> tuple[str, str]:
        found = json.loads((fresh.cell(configuration) / f"{stage}.json").read_text())["reason"]
        return found["code"], found["kind"]

    assert reason("never-ready", "launch") == ("launch_timeout", "transient")
    assert reason("dies", "throughput") == ("server_died", "transient")
    assert reason("leaks", "teardown") == ("leaked", "transient")
    assert json.loads((fresh.results / "decision.json").read_text())["winner"] == "good"
    # All three may go better next time: those cells run again, and no other.
    again = fresh.snakemake(DECISION, "--dry-run")
    assert again.planned["launch"] == 2
    assert again.planned["throughput"] == 3


def test_wrong_answers_disagreement_and_garbage_under_load_each_put_a_backend_out(fresh: Folder) -> None:
    study = fresh.study()
    study["backends"] = {
        "good": {"attention-backend": "fa3"},
        "miscounts": {"attention-backend": "fa3", "script": ["wrong=1"]},
        "off": {"attention-backend": "fa3", "script": ["logit-shift=0.5"]},
        "crowded": {"attention-backend": "fa3", "script": ["garbage=bang", "garbage-at=2"]},
    }
    del study["speculative"]
    study["throughput"]["workloads"]["text"] |= {"concurrency": [1, 2], "output_tokens": 24}
    (fresh.path / "texts.jsonl").write_text('{"id": "sun", "prompt": "The sun", "continuation": " rises"}\n')
    study["smoke"] = {
        "max_tokens": 16,
        "prompts": [{"ask": "What is 2+2?", "arithmetic": "2+2"}],
        "continuations": "texts.jsonl",
    }
    fresh.write(study)
    run = fresh.snakemake(DECISION)
    assert run.code == 0, run.text
    for name in study["backends"]:
        assert json.loads((fresh.cell(name) / "smoke.json").read_text())["status"] == "ok"
    decision = json.loads((fresh.results / "decision.json").read_text())
    out = {entry["configuration"]: entry["code"] for entry in decision["eliminated"]}
    assert out == {
        "crowded": "garbage_under_load",
        "miscounts": "wrong_answer",
        "off": "disagrees_with_reference",
    }
    crowded = json.loads((fresh.cell("crowded") / "throughput.json").read_text())
    assert "text at concurrency 2" in crowded["reason"]["message"]
    assert set(crowded["reason"]["evidence"][0]) == {"!"}
    assert decision["agreement"][0]["reference"] == decision["winner"] == "good"
    assert "<b>Answers</b>" in (fresh.results / "summary.md").read_text()


def test_nothing_healthy_is_a_decision_too(fresh: Folder) -> None:
    study = fresh.study()
    study["backends"] = {"crash": study["backends"]["crash"]}
    fresh.write(study)
    run = fresh.snakemake("all")
    assert run.code == 0, run.text
    decision = json.loads((fresh.results / "decision.json").read_text())
    assert decision["winner"] is None
    assert [e["code"] for e in decision["eliminated"]] == ["unsupported_arch"]
    assert (fresh.results / "report.html").is_file()


def test_a_flag_the_engine_does_not_have_stops_everything_before_the_first_launch(fresh: Folder) -> None:
    study = fresh.study()
    study["backends"]["good"] = {"atention-backend": "fa3"}
    fresh.write(study)
    run = fresh.snakemake("all")
    assert run.code != 0
    assert "study.yaml:" in run.text
    assert "attention-backend" in run.text
    assert scripted.launches(fresh.events) == 0


def test_a_broken_study_is_one_line(fresh: Folder) -> None:
    study = fresh.study()
    study["throughput"]["secnds"] = 3
    fresh.write(study)
    run = fresh.snakemake("all")
    assert run.code != 0
    [line] = [line for line in run.text.splitlines() if line.startswith("error: ")]
    assert "study.yaml:" in line
    assert "seconds" in line
    assert "Traceback" not in run.text

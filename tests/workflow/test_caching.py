"""Only what changed runs again. Each test is one sentence of that promise and counts started jobs."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import scripted
from pivotbench.results import DECISION_SCHEMA, DERIVATION
from workflow.campaign import DECISION, Folder

Change = Callable[[Callable[[dict], None]], Folder]
SLOWER = {"script-token-seconds": 0.11}
GOOD = "results/small/backends/good/r1/teardown.json"
ONE_CELL = Counter(launch=1, smoke=1, throughput=1, teardown=1)


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(p.relative_to(folder)): (p.stat().st_mtime_ns, p.read_bytes())
        for p in sorted(folder.rglob("*"))
        if p.is_file() and not {"iocache", "log"} & set(p.parts)  # Snakemake's own, of any run
    }


def test_nothing_changed_runs_nothing(campaign: Folder) -> None:
    run = campaign.snakemake("all")
    assert run.code == 0
    assert not run.jobs, run.text


def test_one_flag_of_one_configuration_runs_its_cells_and_what_follows_alone(changed: Change) -> None:
    folder = changed(lambda s: s["backends"]["slow"].update(SLOWER))
    before = snapshot(folder.results / "speculative")
    run = folder.snakemake("all")
    assert run.cell_jobs() == ONE_CELL, run.text
    assert run.jobs["decide"] == run.jobs["report"] == 1
    assert snapshot(folder.results / "speculative") == before, "a loser leaves the second phase alone"


def test_a_changed_workload_runs_throughput_and_later(changed: Change) -> None:
    folder = changed(lambda s: s["throughput"]["workloads"]["text"].update(output_tokens=9))
    run = folder.snakemake(GOOD)
    assert run.cell_jobs() == Counter(throughput=1, teardown=1), run.text


def test_changed_prompts_run_throughput_and_later(campaign: Folder) -> None:
    prompts = campaign.path / "prompts.jsonl"
    prompts.write_text(prompts.read_text().replace("number 1", "number 11"))
    run = campaign.snakemake(GOOD)
    assert run.cell_jobs() == Counter(throughput=1, teardown=1), run.text


def test_a_changed_smoke_prompt_runs_smoke_and_later(changed: Change) -> None:
    folder = changed(lambda s: s["smoke"]["prompts"].append({"ask": "What is 3+4?", "contains": "7"}))
    run = folder.snakemake(GOOD)
    assert run.cell_jobs() == Counter(smoke=1, throughput=1, teardown=1), run.text


def test_reordered_yaml_runs_nothing(campaign: Folder) -> None:
    study = campaign.study()
    study["backends"] = dict(reversed(study["backends"].items()))
    campaign.write(dict(reversed(study.items())))
    run = campaign.snakemake("all")
    assert run.code == 0
    assert not run.jobs, run.text


def test_a_rule_written_otherwise_runs_nothing_even_beside_what_is_forced(campaign: Folder) -> None:
    for record in (campaign.path / ".snakemake" / "metadata").iterdir():
        record.write_text(json.dumps(json.loads(record.read_text()) | {"code": "as it was written before"}))
    run = campaign.snakemake("all", "--dry-run", "--forcerun", "report")
    assert run.planned == Counter(all=1, report=1), run.text


def test_another_way_to_derive_makes_what_is_derived_anew_and_no_cell(campaign: Folder) -> None:
    before = f'"made_by":["{DECISION_SCHEMA}",{DERIVATION}]'
    records = [*(campaign.path / ".snakemake" / "metadata").iterdir()]
    for record in records:
        record.write_text(record.read_text().replace(json.dumps(before)[1:-1], json.dumps("older")[1:-1]))
    planned = campaign.snakemake("all", "--dry-run").planned
    derived = ("race", "measurements", "decide", "charts", "report")
    assert planned.keys() == {"all", *derived}, planned


def test_a_changed_margin_runs_the_judgement_and_no_cell(changed: Change) -> None:
    folder = changed(lambda s: s["decision"].update(margin=0.05))
    run = folder.snakemake(DECISION)
    assert not run.cell_jobs(), run.text
    assert run.jobs["decide"] == 1


def test_a_raised_round_limit_runs_the_new_rounds_alone(changed: Change) -> None:
    folder = changed(lambda s: s["decision"].update(rounds={"min": 2, "max": 2}))
    before = {name: content for name, content in snapshot(folder.results).items() if "/r1/" in name}
    run = folder.snakemake(DECISION)
    assert run.code == 0
    after = snapshot(folder.results)
    assert all(after[name] == content for name, content in before.items())
    healthy = (
        ("backends", "good"),
        ("backends", "slow"),
        ("speculative", "good+none"),
        ("speculative", "good+ngram"),
    )
    cells = [folder.cell(name, 2, phase) for phase, name in healthy]
    assert all((cell / "teardown.json").is_file() for cell in cells)
    assert run.cell_jobs() == Counter(launch=4, smoke=4, throughput=4, teardown=4), run.text
    race = json.loads((folder.results / "race" / "backends.r2.json").read_text())
    assert {e["configuration"]: e["rounds"] for e in race["evidence"] if len(e["rounds"]) > 1} == {
        "good": [1, 2],
        "slow": [1, 2],
    }
    launched = {
        json.loads((folder.cell("good", n) / "launch.json").read_text())["server"]["launch_id"]
        for n in (1, 2)
    }
    assert len(launched) == 2, "every round is a launch of its own"


def test_a_configuration_that_ran_again_after_the_others_last_round_is_named_in_the_decision(
    changed: Change,
) -> None:
    def two_rounds_of_two(study: dict) -> None:
        study["decision"].update(rounds={"min": 2, "max": 2})
        study["backends"] = {name: study["backends"][name] for name in ("good", "slow")}
        del study["speculative"]

    def out_of_turn(folder: Folder) -> list[str]:
        assert (run := folder.snakemake(DECISION)).code == 0, run.text
        threats = json.loads((folder.results / "decision.json").read_text())["threats"]
        return [threat["message"] for threat in threats if threat["code"] == "out_of_turn"]

    folder = changed(two_rounds_of_two)
    assert not out_of_turn(folder)
    changed(lambda s: s["backends"]["slow"].update(SLOWER))
    (message,) = out_of_turn(folder)
    assert message.startswith("slow had rounds measured after later rounds of good:")


@pytest.mark.parametrize("records", [True, False], ids=["with records", "copied without records"])
def test_a_backend_removed_from_a_finished_study_leaves_the_evidence_and_runs_no_cell(
    changed: Change, *, records: bool
) -> None:
    folder = changed(lambda s: s["backends"].pop("crash"))
    if not records:
        shutil.rmtree(folder.path / ".snakemake")
    frozen = folder.snakemake(DECISION, config=("frozen=true",))
    said = "race/backends.r1.json: names crash, which the study no longer runs: put it back, or run without"
    assert frozen.code != 0 and said in frozen.text and "Traceback" not in frozen.text
    run = folder.snakemake(DECISION)
    assert run.code == 0, run.text
    assert "race/backends.r1.json is made anew: the study no longer runs crash" in run.text
    assert not run.cell_jobs(), run.text
    decision = json.loads((folder.results / "decision.json").read_text())
    assert "crash" not in {row["configuration"] for row in decision["evidence"]}
    assert not folder.snakemake(DECISION, "--dry-run").planned


def test_a_backend_that_the_last_race_asked_for_may_be_removed(changed: Change) -> None:
    folder = changed(lambda s: (s["backends"].pop("slow"), s["decision"].update(rounds={"min": 2, "max": 2})))
    race = folder.results / "race" / "backends.r1.json"
    told = json.loads(race.read_text())
    race.write_text(json.dumps(told | {"next": ["good", "slow"], "ended": False}))
    run = folder.snakemake(DECISION, "--dry-run")
    assert run.code == 0 and "Traceback" not in run.text, run.text
    assert run.planned["race"] >= 1 and not run.planned["launch"], (
        "before the race is judged nobody knows more"
    )


def test_a_dry_run_changes_no_file(changed: Change) -> None:
    folder = changed(lambda s: s["backends"]["slow"].update(SLOWER))
    before = snapshot(folder.path)
    run = folder.snakemake("all", "--dry-run")
    assert run.planned["launch"] == 1, run.text
    assert snapshot(folder.path) == before


def test_a_dry_run_on_a_fresh_clone_changes_no_file(fresh: Folder) -> None:
    before = snapshot(fresh.path)
    assert fresh.snakemake("all", "--dry-run").code == 0
    assert snapshot(fresh.path) == before


def test_results_copied_without_snakemakes_records_are_judged_by_their_fingerprints(changed: Change) -> None:
    folder = changed(lambda s: s["backends"]["slow"].update(SLOWER))
    shutil.rmtree(folder.path / ".snakemake")
    run = folder.snakemake(DECISION)
    assert run.cell_jobs() == ONE_CELL, run.text


def test_copied_results_that_hold_run_no_cell(campaign: Folder) -> None:
    shutil.rmtree(campaign.path / ".snakemake")
    assert not campaign.snakemake(DECISION).cell_jobs()


def test_a_changed_engine_version_makes_every_cell_stale(fresh: Folder, tmp_path: Path) -> None:
    python = scripted.install(tmp_path / "engine", version="0.5.16")
    study = fresh.study()
    study["python"] = str(python)
    fresh.write(study)
    launches = [str((fresh.cell(name) / "launch.json").relative_to(fresh.path)) for name in ("good", "slow")]
    assert fresh.snakemake(*launches).jobs["launch"] == 2
    assert not fresh.snakemake(*launches).jobs
    scripted.upgrade(tmp_path / "engine", "0.5.17")
    run = fresh.snakemake(*launches, "--dry-run")
    assert run.planned["launch"] == 2
    assert "0.5.17" in run.text


def test_another_machine_makes_every_cell_stale_and_frozen_reports_from_what_is_stored(
    campaign: Folder,
) -> None:
    for path in campaign.results.rglob("r1/launch.json"):
        launch = json.loads(path.read_text())
        launch["environment"]["cpu_model"] = "Another Processor"
        path.write_text(json.dumps(launch))
    assert campaign.snakemake("all", "--dry-run").planned["launch"] > 0
    (campaign.results / "report.html").unlink()
    run = campaign.snakemake("all", config=("frozen=true",))
    assert "no evidence" not in run.text
    assert run.code == 0, run.text
    assert not run.cell_jobs()
    assert (campaign.results / "report.html").is_file()


def test_a_transient_failure_runs_again_next_time(fresh: Folder) -> None:
    study = fresh.study()
    study["backends"] = {
        "good": {"attention-backend": "fa3"},
        "flaky": {
            "attention-backend": "triton",
            "script": ["die-after=3", f"once={fresh.path / 'counter'}"],
        },
    }
    del study["speculative"]
    fresh.write(study)
    target = str((fresh.cell("flaky") / "teardown.json").relative_to(fresh.path))
    assert fresh.snakemake(target).code == 0
    first = json.loads((fresh.cell("flaky") / "throughput.json").read_text())
    assert (first["status"], first["reason"]["code"]) == ("failed", "server_died")
    run = fresh.snakemake(target)
    assert run.cell_jobs()["throughput"] == 1, run.text
    again = json.loads((fresh.cell("flaky") / "throughput.json").read_text())
    assert again["status"] == "ok"


def test_a_deterministic_failure_runs_again_only_on_demand(campaign: Folder) -> None:
    run = campaign.snakemake("all", "--dry-run", config=("retry=all",))
    assert run.planned["launch"] == 1, run.text  # the crash
    assert run.planned["smoke"] == 2, run.text  # the garbage, and what follows from the crash


def test_one_stage_by_target_runs_alone_and_leaves_nothing_behind(campaign: Folder) -> None:
    target = str((campaign.cell("good") / "throughput.json").relative_to(campaign.path))
    run = campaign.snakemake(target, "--force")
    assert run.code == 0
    assert run.jobs == Counter(throughput=1), run.text
    assert json.loads((campaign.path / target).read_text())["server"]["relaunched"], "its server was gone"
    assert not list((campaign.path / "locks" / "launches").iterdir())
    again = campaign.snakemake(DECISION)
    assert again.cell_jobs() == Counter(teardown=1), again.text


def test_a_speculative_stage_by_target_runs_before_phase_one_has(fresh: Folder) -> None:
    target = "results/small/speculative/good+ngram/r1/throughput.json"
    run = fresh.snakemake(target, "--force")
    assert run.code == 0
    assert run.cell_jobs() == Counter(launch=1, smoke=1, throughput=1), run.text
    assert not list((fresh.path / "locks" / "launches").iterdir())


def test_a_speculative_stage_by_target_runs_alone_after_phase_one_has(campaign: Folder) -> None:
    target = "results/small/speculative/good+ngram/r1/throughput.json"
    run = campaign.snakemake(target, "--force")
    assert run.jobs == Counter(throughput=1), run.text
    again = campaign.snakemake(DECISION)
    assert again.cell_jobs() == Counter(teardown=1), again.text


def test_a_decision_of_another_version_is_not_said_at_the_end_of_a_single_stage(campaign: Folder) -> None:
    decision = campaign.results / "decision.json"
    stored = json.loads(decision.read_text())
    decision.write_text(json.dumps({"schema": "pivotbench/decision/1", "winner": stored["winner"]}))
    run = campaign.snakemake(str(campaign.cell("good").relative_to(campaign.path) / "launch.json"))
    assert run.code == 0 and "Traceback" not in run.text, run.text
    assert "report      " not in run.text


def test_frozen_without_races_is_one_line(fresh: Folder) -> None:
    run = fresh.snakemake("all", config=("frozen=true",))
    assert run.code != 0
    assert "error: results/small/race: no race files" in run.text and "Traceback" not in run.text


def test_a_deleted_or_damaged_result_is_made_anew_and_frozen_does_without_it(campaign: Folder) -> None:
    (campaign.cell("slow") / "smoke.json").unlink()
    (campaign.results / "decision.json").unlink()
    damaged = campaign.cell("crash") / "teardown.json"
    damaged.write_text('{"schema": "pivotbench/teardown/1"}')
    frozen = campaign.snakemake(DECISION, config=("frozen=true",))
    assert frozen.code == 0, frozen.text
    assert "backends/slow/r1/smoke.json: missing; it is no evidence" in frozen.text
    assert "crash/r1/teardown.json: damaged: status: field required; it is no evidence" in frozen.text
    assert (campaign.results / "decision.json").is_file()
    again = campaign.snakemake(DECISION)
    assert again.code == 0, again.text
    assert again.cell_jobs() == Counter(smoke=1, throughput=1, teardown=2), again.text

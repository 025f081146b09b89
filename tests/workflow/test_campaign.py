"""A campaign runs to its end whatever its configurations do, and says what became of each."""

from __future__ import annotations

import json

from workflow.campaign import Folder, Run


def stage(folder: Folder, configuration: str, name: str, round_number: int = 1) -> dict:
    return json.loads((folder.cell(configuration, round_number) / f"{name}.json").read_text())


def test_a_campaign_with_broken_configurations_succeeds(finished: tuple[Folder, Run]) -> None:
    folder, run = finished
    assert run.code == 0
    for name in ("decision.json", "summary.md", "report.html", "measurements.parquet", "measurements.csv"):
        assert (folder.results / name).stat().st_size > 0
    assert (folder.results / "environment.json").is_file()


def test_a_crash_at_launch_is_a_result_with_its_cause(finished: tuple[Folder, Run]) -> None:
    folder, _ = finished
    launch = stage(folder, "crash", "launch")
    assert launch["status"] == "failed"
    assert launch["reason"]["code"] == "unsupported_arch"
    assert launch["reason"]["evidence"]
    assert stage(folder, "crash", "throughput")["status"] == "skipped"
    assert stage(folder, "crash", "teardown")["verdict"] == "released"


def test_garbage_is_caught_before_speed_is_measured(finished: tuple[Folder, Run]) -> None:
    folder, _ = finished
    assert stage(folder, "garbage", "smoke")["reason"]["code"] == "garbage"
    assert stage(folder, "garbage", "throughput")["status"] == "skipped"


def test_the_decision_names_winner_losers_and_speculation(finished: tuple[Folder, Run]) -> None:
    folder, _ = finished
    decision = json.loads((folder.results / "decision.json").read_text())
    assert decision["winner"] in ("good", "good+ngram")
    assert "--attention-backend fa3" in decision["launch_command"]
    out = {entry["configuration"]: entry["code"] for entry in decision["eliminated"]}
    assert out["garbage"] == "garbage"
    verdicts = {(s["configuration"], s["workload"], s["concurrency"]) for s in decision["speculation"]}
    assert verdicts == {("good+ngram", "text", 1)}
    assert decision["speculation"][0]["acceptance_length"] is not None


def test_the_four_stages_of_a_cell_share_one_server(finished: tuple[Folder, Run]) -> None:
    folder, _ = finished
    ids = {
        stage(folder, "good", name)["server"]["launch_id"]
        for name in ("launch", "smoke", "throughput", "teardown")
    }
    assert len(ids) == 1


def test_a_load_tells_how_long_it_waited_for_an_idle_server(finished: tuple[Folder, Run]) -> None:
    folder, _ = finished
    runs = stage(folder, "good", "throughput")["runs"]
    assert runs and all(run["warmup"]["idle_wait_seconds"] > 0 for run in runs)


def test_a_launch_says_what_it_knows_of_its_model_and_the_decision_how_far_the_limit_is(
    finished: tuple[Folder, Run],
) -> None:
    folder, _ = finished
    facts = stage(folder, "good", "launch")["model"]
    assert facts["shape"] is None and facts["why"]
    limit = json.loads((folder.results / "decision.json").read_text())["limit"]
    assert limit["share"] is None and limit["reason"]


def test_the_run_ends_by_saying_the_decision_and_where_the_report_lies(finished: tuple[Folder, Run]) -> None:
    _, run = finished
    decision = run.text.partition("\nsmall: ")[2]
    assert "good" in decision
    assert decision.endswith("report      results/small/report.html\n")

"""What puts a configuration out, and what does not."""

from __future__ import annotations

from factory import GARBAGE, UNSUPPORTED, Cell, cell_files
from pivotbench.decision.elimination import eliminated
from pivotbench.results import Reason

TIMEOUT = Reason.of("timeout", "no answer in 60 s")
UNDER_LOAD = Reason.of("garbage_under_load", "texts received under load are garbage", ("!!!!",))
SPEED = {("chat", 1): 50.0}


def test_one_deterministic_failure_is_enough() -> None:
    (out,) = eliminated([cell_files(Cell("backends", "a", 1, failed="launch", reason=UNSUPPORTED))])
    assert (out["configuration"], out["stage"], out["code"]) == ("a", "launch", "flag_conflict")
    assert out["evidence"] == list(UNSUPPORTED.evidence)
    assert out["links"] == list(UNSUPPORTED.links)


def test_what_helps_stands_beside_the_reason() -> None:
    own = Reason("oom_weights", "deterministic", "No memory.", remedy="Use a smaller format.")
    (out,) = eliminated([cell_files(Cell("backends", "a", 1, failed="launch", reason=own))])
    assert out["remedy"] == "Use a smaller format."
    (out,) = eliminated([cell_files(Cell("backends", "a", 1, failed="throughput", reason=UNDER_LOAD))])
    assert out["remedy"].startswith("Compare with one request at a time")


def test_one_transient_failure_is_not_and_two_are() -> None:
    first = cell_files(Cell("backends", "a", 1, failed="launch", reason=TIMEOUT))
    second = cell_files(Cell("backends", "a", 2, failed="launch", reason=TIMEOUT))
    assert eliminated([first]) == []
    (out,) = eliminated([first, second])
    assert out["code"] == "timeout"
    assert "2 rounds failed" in out["reason"]


def test_failures_of_two_configurations_are_not_added_up() -> None:
    cells = [cell_files(Cell("backends", n, 1, failed="launch", reason=TIMEOUT)) for n in ("a", "b")]
    assert eliminated(cells) == []


def test_garbage_under_load_eliminates_though_smoke_passed() -> None:
    (out,) = eliminated([cell_files(Cell("backends", "a", 1, SPEED, failed="throughput", reason=UNDER_LOAD))])
    assert (out["stage"], out["code"]) == ("throughput", "garbage_under_load")


def test_garbage_in_a_run_eliminates_even_if_the_stage_said_ok() -> None:
    cell = cell_files(Cell("backends", "a", 1, SPEED))
    assert cell.throughput is not None
    cell.throughput["runs"][0]["answers"]["bad"] = {"loop": 1}
    (out,) = eliminated([cell])
    assert (out["stage"], out["code"]) == ("throughput", "garbage_under_load")
    assert "loop" in out["reason"]


def test_garbage_in_a_run_is_no_fault_where_the_study_asked_for_speed_only() -> None:
    cell = cell_files(Cell("backends", "a", 1, SPEED, speed_only=True))
    assert cell.throughput is not None
    cell.throughput["runs"][0]["answers"]["bad"] = {"broken_characters": 1}
    assert eliminated([cell]) == []


def test_a_later_deterministic_failure_outweighs_an_earlier_good_round() -> None:
    cells = [
        cell_files(Cell("backends", "a", 1, SPEED)),
        cell_files(Cell("backends", "a", 2, failed="smoke", reason=GARBAGE)),
    ]
    assert [e["code"] for e in eliminated(cells)] == ["garbage"]

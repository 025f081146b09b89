"""Differences of the hardware between two configurations' measurements."""

from __future__ import annotations

from typing import Any

from pivotbench.decision.conditions import Conditions, conditions


def row(
    name: str, round_: int, throttled: bool | None, clock: float | None, heat: float | None
) -> dict[str, Any]:
    return {
        "configuration": name,
        "round": round_,
        "throttled": throttled,
        "sm_clock_mhz": clock,
        "memory_clock_mhz": None,
        "temperature_c": heat,
    }


def test_throttling_of_one_clocks_and_heat_are_named_with_both_figures() -> None:
    rows = [row("a", 1, False, 1980.0, 60.0), row("a", 2, False, 1980.0, 62.0)]
    rows += [
        row("b", 1, True, 1800.0, 70.0),
        row("b", 1, False, 1900.0, 70.0),
        row("b", 2, False, 1850.0, 70.0),
    ]
    found = conditions(rows)
    assert found["a"].unlike(found["b"]) == (
        "throttled: 0 of 2 rounds | 1 of 2 rounds",
        "sm_clock_mhz: 1980 | 1850",
        "temperature_c: 61 | 70",
    )


def test_small_differences_and_what_no_sensor_told_are_no_confounders() -> None:
    found = conditions(
        [row("a", 1, None, None, None), row("b", 1, True, 1980.0, 60.0), row("c", 1, True, 1975.0, 64.0)]
    )
    assert found["a"] == Conditions()
    assert found["a"].unlike(found["b"]) == found["b"].unlike(found["c"]) == ()

"""The Pareto set holds the operating points that none beats in throughput and latency."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from campaigns import CHAT_RULES, run_phase
from factory import GARBAGE, Cell, Load
from pivotbench.decision.decide import decide
from pivotbench.decision.loads.pareto import unbeaten
from pivotbench.decision_rules import DecisionRules

Point = tuple[int, int]  # latency, throughput


def points(pairs: Sequence[Point]) -> list[dict[str, Any]]:
    return [{"tpot_p50_seconds": latency, "output_tok_s": tok_s} for latency, tok_s in pairs]


def front(pairs: Sequence[Point]) -> list[Point]:
    return [(p["tpot_p50_seconds"], p["output_tok_s"]) for p in unbeaten(points(pairs))]


def test_only_points_that_none_beats_are_left() -> None:
    assert front([(10, 100), (12, 90), (20, 150), (20, 140), (30, 150)]) == [(10, 100), (20, 150)]


pairs = st.lists(st.tuples(st.integers(1, 20), st.integers(1, 20)), min_size=1, max_size=12)


@given(pairs)
def test_whoever_is_left_out_is_beaten_by_one_who_is_not_and_nobody_left_is(all_: list[Point]) -> None:
    kept = front(all_)
    for latency, tok_s in kept:
        better = [(x, y) for x, y in all_ if x <= latency and y >= tok_s and (x, y) != (latency, tok_s)]
        assert not better
    for latency, tok_s in set(all_) - set(kept):
        assert any(x <= latency and y >= tok_s for x, y in kept)


@given(pairs, st.randoms())
def test_order_and_worse_points_change_nothing(all_: list[Point], rng: Any) -> None:
    shuffled = [*all_, (max(x for x, _ in all_) + 1, min(y for _, y in all_))]
    rng.shuffle(shuffled)
    assert front(shuffled) == front(all_)


def decided(speeds: dict[str, dict[Load, float]], more: Sequence[Cell] = (), **rules: Any) -> Any:
    study = DecisionRules(**{**vars(CHAT_RULES), "rounds_min": 2, "rounds_max": 2, **rules})

    def make(phase: str, names: Sequence[str], round_: int) -> list[Cell]:
        return [*(Cell(phase, n, round_, speeds[n]) for n in names if n in speeds), *more]

    races, cells = run_phase(study, "backends", list(speeds), make)
    return decide(study, races, cells)["pareto"]


SPEEDS: dict[str, dict[Load, float]] = {
    "fast": {("chat", 1): 100.0, ("chat", 4): 240.0},
    "slow": {("chat", 1): 50.0, ("chat", 4): 120.0},
}


def test_throughput_of_server_and_gpu_and_what_a_user_sees_stand_together() -> None:
    alone, loaded = decided(SPEEDS, gpus=4)
    assert [(p["configuration"], p["concurrency"]) for p in (alone, loaded)] == [("fast", 1), ("fast", 4)]
    assert round(loaded["output_tok_s"]) == 240 and round(loaded["output_tok_s_per_gpu"]) == 60
    assert round(loaded["tok_s_per_user"]) == 60 and loaded["ttft_p99_seconds"] is not None
    assert decided(SPEEDS)[0]["output_tok_s_per_gpu"] is None


def test_the_eliminated_have_no_place_whatever_their_speed() -> None:
    wrong = Cell("backends", "wrong", 1, {("chat", 1): 900.0}, failed="throughput", reason=GARBAGE)
    assert decided(SPEEDS, [wrong]) == decided(SPEEDS)


def test_runs_limited_by_the_client_have_no_place() -> None:
    bound = [Cell("backends", "bound", r, {("chat", 1): 900.0}, client_bound=True) for r in (1, 2)]
    assert decided(SPEEDS, bound) == decided(SPEEDS)

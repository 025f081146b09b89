"""A matrix becomes named configurations, the same ones however it is written."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from pivotbench.study.backends import Backends, value_name


def names(**backends: Any) -> list[str]:
    return list(Backends.model_validate(backends).configurations)


def refused(**backends: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        Backends.model_validate(backends)
    return str(caught.value.errors()[0]["msg"])


def test_every_combination_is_a_configuration() -> None:
    backends = Backends.model_validate(
        {"matrix": {"flash-attn": ["on", "off"], "cache-type-k": ["f16", "q8_0"]}}
    )
    assert backends.configurations == {
        "f16-flash-attn-off": {"cache-type-k": "f16", "flash-attn": "off"},
        "f16-flash-attn-on": {"cache-type-k": "f16", "flash-attn": "on"},
        "q8-0-flash-attn-off": {"cache-type-k": "q8_0", "flash-attn": "off"},
        "q8-0-flash-attn-on": {"cache-type-k": "q8_0", "flash-attn": "on"},
    }


def test_a_partial_exclusion_removes_all_it_matches() -> None:
    matrix = {"a": ["x", "y"], "b": ["u", "v"], "c": ["s", "t"]}
    assert names(matrix=matrix, exclude=[{"a": "x"}, {"b": "u", "c": "s"}]) == ["y-u-t", "y-v-s", "y-v-t"]


def test_an_exclusion_matches_numbers_and_their_text() -> None:
    assert names(matrix={"steps": [1, 2]}, exclude=[{"steps": "2"}]) == ["steps-1"]


def test_an_exclusion_that_others_cover_already_still_counts() -> None:
    assert names(matrix={"a": ["x", "y"]}, exclude=[{"a": "x"}, {"a": "x"}]) == ["y"]


def test_named_configurations_stand_beside_a_matrix() -> None:
    assert names(plain={}, matrix={"a": ["x", "y"]}) == ["plain", "x", "y"]


def test_all_excluded_and_none_named_is_refused() -> None:
    assert "no configuration" in refused(matrix={"a": ["x"]}, exclude=[{"a": "x"}])


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("flashinfer_cutlass", "flashinfer-cutlass"),
        ("TRITON", "triton"),
        ("on", "flag-on"),
        (4, "flag-4"),
        (0.85, "flag-0.85"),
        ("4", "flag-4"),
        (True, "flag"),
        (False, "no-flag"),
        (["a", "b"], "flag-a-b"),
        ("+", "flag-"),
    ],
)
def test_a_value_names_itself_where_it_can(value: Any, name: str) -> None:
    assert value_name("flag", value) == name


def test_adding_a_value_renames_no_configuration() -> None:
    before = names(matrix={"a": ["x", 1], "b": ["x", "on"]})
    assert set(before) <= set(names(matrix={"a": ["x", 1, "on", 2], "b": ["x", "on", 1]}))


def test_the_limit_is_ten_thousand_configurations() -> None:
    hundred = list(range(100))
    assert len(names(matrix={"a": hundred, "b": hundred})) == 10_000
    assert "10,001" in refused(one={}, matrix={"a": hundred, "b": hundred})


def test_a_matrix_too_large_to_walk_is_refused_at_once() -> None:
    matrix = {f"flag-{n}": list(range(100)) for n in range(30)}
    assert "combinations; the limit is 10,000" in refused(matrix=matrix)


def test_a_generated_name_that_is_too_long_is_refused() -> None:
    assert "write these configurations by name" in refused(matrix={"a": ["x" * 120]})


def test_two_names_may_hold_the_same_flags() -> None:
    assert names(first={"a": 1}, second={"a": 1}) == ["first", "second"]

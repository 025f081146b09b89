"""What an answer is held against, and which sums a study may ask for."""

from __future__ import annotations

import signal
from fractions import Fraction
from time import process_time

import pytest

from pivotbench.arithmetic import evaluate, states
from pivotbench.expectations import EXPECTATIONS, PATTERN_SECONDS, TooSlow, expected_of, meets


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("17*23", 391),
        ("2 + 3 * 4", 14),
        ("-(2 - 5) ** 2", -9),
        ("7 / 2", Fraction(7, 2)),
        ("0.1 + 0.2", Fraction(3, 10)),
        ("17 % 5", 2),
        ("2 ** 64", 2**64),
        ("2 ** -2", Fraction(1, 4)),
    ],
)
def test_sums_are_worked_out_exactly(text: str, value: Fraction) -> None:
    assert evaluate(text) == value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("__import__('os')", "write numbers"),
        ("(1).real", "write numbers"),
        ("10 // 3", "write numbers"),
        ("1 if 1 else 2", "write numbers"),
        ("'a' * 9", "digits"),
        ("0x10", "digits"),
        ("1e3", "digits"),
        ("True + 1", "digits"),
        ("1 +", "not a sum"),
        ("1 / 0", "zero"),
        ("5 % 0", "zero"),
        ("1 / 3", "no exact decimal"),
        ("9 ** 9 ** 9", "exponent"),
        ("2 ** 0.5", "exponent"),
        ("10 ** 99", "30th"),
        ("(" * 60 + "1" + ")" * 60, "longer"),
    ],
)
def test_anything_else_is_refused_in_words(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        evaluate(text)


@pytest.mark.parametrize(
    "text",
    [
        "391",
        "17*23=391.",
        "It is 391, I think",
        "**391**",
        "(391)",
        "391.0",
        "$391",
        "17 − 3 is 14; 391",
        "391!",
    ],
)
def test_a_number_is_found_where_it_stands_by_itself(text: str) -> None:
    assert states(text, Fraction(391))


@pytest.mark.parametrize(
    "text", ["1391", "3910", "391.5", "1,391", "-391", "−391", "x391", "39 1", "0.391", ""]
)
def test_a_number_is_not_found_inside_another(text: str) -> None:
    assert not states(text, Fraction(391))


@pytest.mark.parametrize(
    "text", ["12,000", "12 000", "12'000", "12_000", "12000", "12,000.00", "12\u202f000"]
)
def test_thousands_may_be_set_apart(text: str) -> None:
    assert states(text, Fraction(12_000))


def test_a_broken_server_that_writes_digits_without_end_states_nothing() -> None:
    assert not states("0" * 10_000, Fraction(0))
    assert states("0" * 10_000 + " is 7", Fraction(7))


def test_a_minus_sign_belongs_to_its_number_unless_it_stands_between_two() -> None:
    assert states("The result is -9.", Fraction(-9)) and states("−9", Fraction(-9))
    assert states("10-7=3, 10 - 7", Fraction(7)) and not states("10-7", Fraction(-7))
    assert states("3.5 metres", Fraction(7, 2))


def test_each_kind_of_expectation_holds_where_its_name_says() -> None:
    text = " The answer is 4.\n"
    assert EXPECTATIONS["contains"](text, "ANSWER") and not EXPECTATIONS["contains"](text, "five")
    assert EXPECTATIONS["matches"](text, r"\b4\b") and not EXPECTATIONS["matches"](text, r"^4$")
    assert EXPECTATIONS["equals"](text, "The answer is 4.") and not EXPECTATIONS["equals"](text, "4")
    assert EXPECTATIONS["arithmetic"](text, "2+2") and not EXPECTATIONS["arithmetic"](text, "2+3")


@pytest.mark.parametrize(
    ("pattern", "text"),
    [(r"(a+)+$", "a" * 40 + "!"), (r"^(\w+\s?)*$", "1" * 40 + "!"), (r"^(a|aa)+$", "a" * 60 + "b")],
)
def test_a_pattern_that_tries_more_ways_than_there_is_time_for_is_given_up(pattern: str, text: str) -> None:
    before = signal.getsignal(signal.SIGVTALRM), process_time()
    with pytest.raises(TooSlow):
        EXPECTATIONS["matches"](text, pattern)
    assert process_time() - before[1] < 5 * PATTERN_SECONDS
    assert (signal.getsignal(signal.SIGVTALRM), signal.getitimer(signal.ITIMER_VIRTUAL)[0]) == (before[0], 0)
    assert meets(text, ("matches", r"(a|1)")) is True


def test_a_prompt_says_which_it_is_held_against() -> None:
    assert expected_of({"ask": "2+2?", "arithmetic": "2+2"}) == ("arithmetic", "2+2")
    assert expected_of({"ask": "Hello?"}) is None

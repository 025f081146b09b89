"""What a study may expect of an answer: the kinds, and whether a text meets one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from pivotbench import arithmetic


def contains(text: str, wanted: str) -> bool:
    """Return whether the text holds ``wanted``, letter case aside."""
    return wanted.casefold() in text.casefold()


def matches(text: str, wanted: str) -> bool:
    """Return whether the regular expression ``wanted`` is found in the text."""
    return re.search(wanted, text) is not None


def equals(text: str, wanted: str) -> bool:
    """Return whether the text is ``wanted``, space at both ends aside."""
    return text.strip() == wanted.strip()


def states_the_value(text: str, wanted: str) -> bool:
    """Return whether the value of the sum ``wanted`` stands in the text; see arithmetic."""
    return arithmetic.states(text, arithmetic.evaluate(wanted))


EXPECTATIONS: Mapping[str, Callable[[str, str], bool]] = {
    "contains": contains,
    "matches": matches,
    "equals": equals,
    "arithmetic": states_the_value,
}


def expected_of(prompt: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the kind and value of the expectation in a prompt of a study, or None where it has none."""
    return next(((kind, str(prompt[kind])) for kind in EXPECTATIONS if prompt.get(kind) is not None), None)

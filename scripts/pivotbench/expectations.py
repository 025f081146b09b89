"""What a study may expect of an answer: the kinds, and whether a text meets one."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

from pivotbench import arithmetic

# Processor time that a study's pattern may take on one answer; a sound one takes less than a millisecond.
PATTERN_SECONDS = 2.0


class TooSlow(Exception):
    """A study's pattern takes too long on an answer; nothing is known of whether it is found there."""


def contains(text: str, wanted: str) -> bool:
    """Return whether the text holds ``wanted``, letter case aside."""
    return wanted.casefold() in text.casefold()


def matches(text: str, wanted: str) -> bool:
    """Return whether the regular expression ``wanted`` is found in the text.

    Raises TooSlow after PATTERN_SECONDS: one that repeats a repetition may try more ways than there is time
    for. To be called in a process's first thread.
    """
    with _processor_limit(PATTERN_SECONDS):
        return re.search(wanted, text) is not None


def equals(text: str, wanted: str) -> bool:
    """Return whether the text is ``wanted``, space at both ends aside."""
    return text.strip() == wanted.strip()


def states_the_value(text: str, wanted: str) -> bool:
    """Return whether the value of the sum ``wanted`` stands in the text; see arithmetic."""
    return arithmetic.states(text, arithmetic.evaluate(wanted))


@contextmanager
def _processor_limit(seconds: float) -> Iterator[None]:
    """Raise TooSlow where what is within takes more of the processor.

    Python's matcher looks for signals every few thousand steps. The timer counts processor time, so that a
    busy machine shortens nobody's.
    """

    def end(_number: int, _frame: FrameType | None) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


EXPECTATIONS: Mapping[str, Callable[[str, str], bool]] = {
    "contains": contains,
    "matches": matches,
    "equals": equals,
    "arithmetic": states_the_value,
}


def expected_of(prompt: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the kind and value of the expectation in a prompt of a study, or None where it has none."""
    return next(((kind, str(prompt[kind])) for kind in EXPECTATIONS if prompt.get(kind) is not None), None)


def meets(text: str, expected: tuple[str, str] | None) -> bool | None:
    """Return whether a text meets an expectation; None without one, and where its pattern takes too long."""
    try:
        return EXPECTATIONS[expected[0]](text, expected[1]) if expected else None
    except TooSlow:
        return None

"""Expectations that a study may state of an answer."""

from __future__ import annotations

import re


def expectation_met(
    text: str, *, contains: str | None = None, matches: str | None = None, equals: str | None = None
) -> bool:
    """Return whether a text meets every expectation given.

    ``contains``: the text holds it, letter case aside; ``matches``: the regular expression is found in it;
    ``equals``: it is the text, space at both ends aside. Raises re.error for a bad expression.
    """
    return (
        (contains is None or contains.casefold() in text.casefold())
        and (matches is None or re.search(matches, text) is not None)
        and (equals is None or text.strip() == equals.strip())
    )

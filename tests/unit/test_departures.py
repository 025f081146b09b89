"""Where an answer leaves the reference's, by token ids and by characters alone."""

from __future__ import annotations

import pytest

from pivotbench.agreement.departures import Departure, departure, usual
from pivotbench.agreement.reading import Said
from pivotbench.engines.base import Alternative

# The reference: "The cat sat." and the end; at each token one alternative, so much less likely.
TOKENS = ((1, "The", 2.0), (2, " cat", 0.3), (3, " sat", 2.0), (4, ".", 0.2), (5, "", 0.1))
OTHERS: tuple[tuple[int, str], ...] = ((11, "A"), (12, " dog"), (13, " lay"), (14, " down"), (15, " And"))
NEAR = 0.5


def said(text: str, *ids: int) -> Said:
    return Said(text, ids or None, None, None, "")


def reference() -> Said:
    places: list[tuple[Alternative, ...]] = [
        ((token, text, -0.1), (other, word, -0.1 - gap))
        for (token, text, gap), (other, word) in zip(TOKENS, OTHERS, strict=True)
    ]
    return Said("The cat sat.", tuple(t[0] for t in TOKENS), tuple(places), None, "")


@pytest.mark.parametrize(
    ("text", "ids", "kind", "shared", "gap"),
    [
        ("The cat sat.", (1, 2, 3, 4, 5), "equal", 5, None),
        ("The dog sat.", (1, 12, 3, 4, 5), "near_tie", 1, 0.3),
        ("The cat lay.", (1, 2, 13, 4, 5), "clear", 2, 2.0),
        ("A cat sat.", (11, 2, 3, 4, 5), "clear", 0, 2.0),
        ("The cat sat. And", (1, 2, 3, 4, 15), "near_tie", 4, 0.1),
        ("The cat sat on", (1, 2, 3, 99), "unknown", 3, 0.2),
        ("The cat", (1, 2), "unknown", 2, None),
    ],
)
def test_token_ids_tell_the_place_and_the_references_logprobs_the_gap(
    text: str, ids: tuple[int, ...], kind: str, shared: int, gap: float | None
) -> None:
    found = departure(reference(), said(text, *ids), NEAR)
    assert (found.kind, found.shared, found.unit) == (kind, shared, "tokens")
    assert found.gap_nats == (None if gap is None else pytest.approx(gap))


@pytest.mark.parametrize(
    ("text", "kind", "shared"),
    [
        ("The cat sat.", "equal", 12),
        ("The dog sat.", "near_tie", 4),
        ("The cat lay down.", "clear", 8),
        ("The cat sat. And so on", "near_tie", 12),
        ("The cat sat down", "near_tie", 11),
        ("The cat sat on", "unknown", 11),
        ("The cat scratched", "clear", 9),  # no token listed begins so: less likely than the last listed
        ("The cat", "clear", 7),
    ],
)
def test_characters_do_where_the_other_told_no_ids(text: str, kind: str, shared: int) -> None:
    found = departure(reference(), said(text), NEAR)
    assert (found.kind, found.shared, found.unit) == (kind, shared, "characters")


def test_without_the_references_logprobs_how_near_it_was_is_unknown() -> None:
    assert departure(said("The cat", 1, 2), said("The dog", 1, 12), NEAR).kind == "unknown"
    assert departure(said("The cat"), said("The dog"), NEAR).kind == "unknown"


def test_of_equally_frequent_kinds_the_mildest_is_the_usual_one() -> None:
    kinds = [Departure("clear", 1, "tokens"), Departure("near_tie", 1, "tokens")]
    assert usual(kinds) == "near_tie"
    assert usual([*kinds, Departure("clear", 1, "tokens")]) == "clear"

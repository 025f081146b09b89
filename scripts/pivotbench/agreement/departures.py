"""Where an answer leaves the reference's, and how near a tie it was there.

Greedy decoding takes the likeliest token. Two right backends round differently, so where two tokens are about
equally likely they may take either, and from there on the texts have nothing to do with each other. Hence the
first departure alone is looked at, with the gap between the two tokens in the reference's own eyes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pivotbench.agreement.reading import Said
from pivotbench.engines.base import Alternative

Kind = Literal["equal", "near_tie", "unknown", "clear"]
# The mildest first: of kinds that are equally frequent the milder one is taken.
KINDS: tuple[Kind, ...] = ("equal", "near_tie", "unknown", "clear")


@dataclass(frozen=True)
class Departure:
    """How one answer compares with the reference's.

    ``shared``: the length of their common prefix, in tokens where both told ids, else in characters.
    ``gap_nats``: log probability of the reference's token less that of the other's; at least that where the
    other's was not among the likeliest the server listed. None where nothing is known.
    """

    kind: Kind
    shared: int
    unit: Literal["tokens", "characters"]
    gap_nats: float | None = None


def departure(reference: Said, other: Said, near_tie_nats: float) -> Departure:
    """Return where ``other`` leaves ``reference``: equal, or apart by a near tie, clearly, or unknown how."""
    ours, theirs = reference.token_ids, other.token_ids
    if ours is not None and theirs is not None:
        if ours == theirs or reference.text == other.text:
            return Departure("equal", len(ours), "tokens")
        place = common_prefix(ours, theirs)
        if place >= min(len(ours), len(theirs)):
            return Departure("unknown", place, "tokens")
        there = _at(reference, place)
        taken = [a for a in there if a[0] == theirs[place]]
        return _graded(place, "tokens", there, _gap(there, ours[place], taken), near_tie_nats)
    if reference.text == other.text:
        return Departure("equal", len(reference.text), "characters")
    common = common_prefix(reference.text, other.text)
    place, begin = _token_at(reference, common)
    there, rest = _at(reference, place), other.text[begin:]
    if not there or ours is None:
        return Departure("unknown", common, "characters")
    # The end token has no text: it was taken where nothing is left, and only there.
    taken = [a for a in there if a[0] != ours[place] and a[1] is not None and _begins(rest, a[1])]
    return _graded(common, "characters", there, _gap(there, ours[place], taken), near_tie_nats)


def usual(departures: Sequence[Departure]) -> Kind:
    """Return the most frequent kind; of equally frequent ones the mildest."""
    counts = Counter(d.kind for d in departures)
    return max(KINDS, key=lambda kind: counts[kind])


def common_prefix(one: Sequence[object], other: Sequence[object]) -> int:
    """Return how many items two sequences have in common from their beginning."""
    if one == other:
        return len(one)
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _at(said: Said, place: int) -> Sequence[Alternative]:
    places = said.alternatives or ()
    return places[place] if 0 <= place < len(places) else ()


def _gap(
    there: Sequence[Alternative], chosen: int, taken: Sequence[Alternative]
) -> tuple[float | None, bool]:
    """Return the gap to the likeliest token ``taken``, and whether it is exact rather than a lower bound."""
    own = next((a[2] for a in there if a[0] == chosen), None)
    known = [a[2] for a in taken if a[2] is not None]
    listed = [a[2] for a in there if a[2] is not None]
    if own is None or not listed:
        return None, False
    return (own - max(known), True) if known else (own - min(listed), False)


def _graded(
    shared: int,
    unit: Literal["tokens", "characters"],
    there: Sequence[Alternative],
    gap: tuple[float | None, bool],
    near_tie_nats: float,
) -> Departure:
    nats, exact = gap
    if not there or nats is None:
        return Departure("unknown", shared, unit)
    if nats > near_tie_nats:
        return Departure("clear", shared, unit, nats)
    return Departure("near_tie" if exact else "unknown", shared, unit, nats)


def _begins(rest: str, token: str) -> bool:
    return rest.startswith(token) if token else not rest


def _token_at(said: Said, character: int) -> tuple[int, int]:
    """Return the place of the token that holds a character of the text, and the character it begins at.

    Beyond the text that is the end token. (-1, 0) where the tokens' texts are not told, or do not make up
    the text.
    """
    begin = 0
    for place, token in enumerate(said.token_ids or ()):
        text = next((a[1] for a in _at(said, place) if a[0] == token), None)
        if text is None or not said.text.startswith(text, begin):
            break
        if begin + len(text) > character or (not text and begin == character == len(said.text)):
            return place, begin
        begin += len(text)
    return -1, 0

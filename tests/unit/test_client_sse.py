"""Events come out whole, wherever the network cut the bytes."""

from __future__ import annotations

import pytest

from pivotbench.client.sse import EventParser

TEXT = 'data: {"t": "naïve 你好 🙂"}\n\ndata: two\n\n'.encode()


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_characters_survive_any_cut(size: int) -> None:
    parser = EventParser()
    pieces = [TEXT[i : i + size] for i in range(0, len(TEXT), size)]
    assert [e for piece in pieces for e in parser.feed(piece)] == ['{"t": "naïve 你好 🙂"}'.encode(), b"two"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [1, 4, 1000])
def test_every_line_end_of_the_standard_is_understood(end: bytes, size: int) -> None:
    stream = end.join([b": ping", b"event: x", b"data: a", b"data:b", b"", b"data: c", b"", b""])
    parser = EventParser()
    pieces = [stream[i : i + size] for i in range(0, len(stream), size)]
    assert [e for piece in pieces for e in parser.feed(piece)] == [b"a\nb", b"c"]


def test_an_event_that_was_not_closed_is_not_given() -> None:
    assert EventParser().feed(b"data: half") == []
    assert EventParser().feed(b"data: whole line, no blank one\n") == []


def test_cuts_inside_of_a_long_stream_lose_nothing() -> None:
    whole = b"".join(b"data: %d\n\n" % n + (b": ping\n\n" if n % 7 == 0 else b"") for n in range(500))
    for size in range(1, 60):
        parser = EventParser()
        pieces = [whole[i : i + size] for i in range(0, len(whole), size)]
        assert [int(e) for piece in pieces for e in parser.feed(piece)] == list(range(500))

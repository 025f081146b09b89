"""An HTTP answer comes out whole, whatever its framing and wherever the network cut it."""

from __future__ import annotations

import gc
import gzip
import weakref
import zlib

import pytest

from pivotbench.client.http import Address, BadResponseError, ResponseParser
from pivotbench.errors import UserError

BODY = b"data: one\n\ndata: two\n\n"
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED_HEAD = OK + b"Transfer-Encoding: chunked\r\n\r\n"
CHUNKED = CHUNKED_HEAD + b"b\r\ndata: one\n\n\r\nB;x=y\r\ndata: two\n\n\r\n0\r\nTrailer: x\r\n\r\n"
COUNTED = OK + b"Content-Length: 22\r\n\r\n" + BODY
UNTIL_CLOSE = OK + b"\r\n" + BODY


def parse(answer: bytes, size: int = 10**6) -> tuple[ResponseParser, bytes]:
    parser = ResponseParser()
    return parser, b"".join(parser.feed(answer[i : i + size]) for i in range(0, len(answer), size))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("answer", [CHUNKED, COUNTED, UNTIL_CLOSE])
def test_the_body_survives_any_cut(answer: bytes, size: int) -> None:
    parser, body = parse(answer, size)
    assert (parser.status, body) == (200, BODY)
    assert parser.done is (answer != UNTIL_CLOSE)
    assert parser.end()


@pytest.mark.parametrize("answer", [CHUNKED, COUNTED, UNTIL_CLOSE, OK[:9]])
def test_a_parser_is_gone_with_its_answer_and_leaves_nothing_to_a_collector(answer: bytes) -> None:
    gc.disable()
    try:
        parser, _ = parse(answer)
        parser.end()
        alive = weakref.ref(parser)
        del parser
        assert alive() is None
    finally:
        gc.enable()


def test_chunks_as_servers_send_them_come_out_as_they_came() -> None:
    parser = ResponseParser()
    sent = (CHUNKED_HEAD + b"3\r\nab", b"c\r\n", b"2\r\nde\r\n", b"1\r\nf\r\n0\r\n\r\n")
    assert [parser.feed(piece) for piece in sent] == [b"ab", b"c", b"de", b"f"]
    assert parser.done and parser.keep


@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_compression_that_nobody_asked_for_is_undone(coding: str, size: int) -> None:
    packed = gzip.compress(BODY) if coding == "gzip" else zlib.compress(BODY)
    head = f"Content-Encoding: {coding}\r\nContent-Length: {len(packed)}\r\n\r\n"
    assert parse(OK + head.encode() + packed, size)[1] == BODY


@pytest.mark.parametrize(
    ("head", "kept"),
    [
        (OK, True),
        (OK + b"Connection: Close\r\n", False),
        (b"HTTP/1.0 200 OK\r\n", False),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n", True),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, True),
    ],
)
def test_a_connection_is_kept_only_where_the_server_says_so(head: bytes, kept: bool) -> None:
    parser, body = parse(head + b"content-length: 2\r\n\r\nhi")
    assert (body, parser.done, parser.keep) == (b"hi", True, kept)


def test_bytes_after_the_answer_spoil_the_connection() -> None:
    assert not parse(COUNTED + b"more")[0].keep
    assert not parse(CHUNKED + b"more")[0].keep


def test_an_answer_that_the_connections_end_cuts_short_is_not_whole() -> None:
    for answer in (CHUNKED[:-3], COUNTED[:-1], CHUNKED[:20]):
        assert not parse(answer)[0].end()


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        OK + b"Content-Length: many\r\n\r\n",
        OK + b"Content-Encoding: br\r\n\r\n",
        OK + b"Content-Encoding: gzip\r\n\r\nno gzip at all",
        CHUNKED_HEAD + b"zz\r\n",
        CHUNKED_HEAD + b"-5\r\n",
        CHUNKED_HEAD + b"1\r\nabc\r\n",
        CHUNKED_HEAD + b"f" * 2000,
    ],
)
def test_what_is_no_http_is_said_to_be_none(answer: bytes) -> None:
    with pytest.raises(BadResponseError):
        parse(answer)


def test_load_goes_to_plain_http_addresses_only() -> None:
    request = Address.of("http://[::1]:30000/base/").post("/x", b"{}")
    assert request.startswith(b"POST /base/x HTTP/1.1\r\nHost: [::1]:30000\r\n")
    for url in ("https://example.org", "localhost:30000", "http://"):
        with pytest.raises(UserError, match="http://HOST:PORT"):
            Address.of(url)

"""Secrets live in the user's environment alone: what is taken for one, and text without them.

A study names a variable; the server gets its value when it is started, and every file that is written of it
goes without.
"""

from __future__ import annotations

import contextlib
import itertools
import operator
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from pivotbench.files import write_bytes

REDACTED = "[redacted]"
# A shorter value would be taken out of ordinary words and numbers as well.
SHORTEST_CHARACTERS = 8

_VARIABLE = re.compile(
    r"(.*_)?(TOKEN|KEY|APIKEY|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)", re.IGNORECASE
)
_SWITCHES = frozenset({"", "0", "1", "true", "false", "yes", "no", "on", "off", "none"})
_FLAG = re.compile(
    r"(.*-)?(api-?key|passw(or)?d|passphrase|secret|(hf|auth|access|bearer)-token)", re.IGNORECASE
)
_BLOCK_BYTES = 1 << 16
# The forms that well-known issuers give their keys (Hugging Face, OpenAI and its like, GitHub, AWS).
_KEY_FORM = rb"\b(?:hf_[A-Za-z0-9]{20,}|sk-[\w-]{20,}|gh[opsur]_[A-Za-z0-9]{30,}|AKIA[0-9A-Z]{16}\b)"
_ISSUED = re.compile(_KEY_FORM)
# And, in a log, what stands as the value of a key: api_key='...', "api_key": "...", '--api-key', '...',
# --api-key ..., api_key: Some("..."), Bearer ...; quotes may be escaped, as in JSON within JSON.
_NAME = (
    rb"(?:api[-_ ]?key|passw(?:or)?d|passphrase|secret(?:[-_](?:access[-_])?key)?"
    rb"|(?:hf|auth|access|bearer)[-_]token)"
)
# How a flag of that name begins; a bound on its length keeps the search of a long line short.
_DASHES = rb"--[\w-]{0,40}"
# No value stands where there is none, nor where code hands one on: api_key=self.api_key.
_NO_VALUE = (
    rb"(?:(?:none|null|true|false|str|optional)(?![^\s'\",)}\]\[=|;\\])"
    rb"|os\.environ(?:\[|\.get\()\\?['\"]"
    rb"|(?-i:self|cls|args|server_args|cfg|config|settings|options)\.(?:\w+\.)*\w*?(?:"
    + _NAME
    + rb"|token|key)(?![^\s'\",)}\]]))"
)
# Nor is the value of a flag another one.
_NO_FLAG = rb"(?!\\?['\"]?" + _DASHES + _NAME + rb"(?![\w-]))"
_OPENING = rb"(?:Some\()?(?P<quote>\\?['\"])?"
_VALUE = (
    rb"(?(quote)(?:(?!(?P=quote))(?:\\.|.))+|(?i:(?!" + _NO_VALUE + rb"))[^\s'\"\\,(){}\[\]<=][^\s'\",)}\]]*)"
)
_LOGGED = re.compile(
    _KEY_FORM
    + rb"|(?<=\b[Bb]earer )[\w.~+/-]{8,}=*"
    + rb"|(?P<before>(?i:"
    + _DASHES
    + _NAME
    + rb"(?:=\s*| \s*"
    + _NO_FLAG
    + rb")|"
    + _NAME
    + rb"(?:\\?['\"]\s*,\s*"
    + _NO_FLAG
    + rb"|\\?['\"]?\s*[:=]\s*))"
    + _OPENING
    + rb")"
    + _VALUE
)
# A list with an item a line, '--api-key', or - --api-key, has the key on the next one.
_VALUE_FOLLOWS = re.compile(
    rb"(?i:" + _NAME + rb"\\?['\"]\s*,|-\s+\\?['\"]?" + _DASHES + _NAME + rb"\\?['\"]?)\Z"
)
_LONGEST_FLAG_BYTES = 100
_NEXT_VALUE = re.compile(
    rb"(?P<before>\s*(?:-\s+)*(?!-\s)(?i:" + _NO_FLAG + rb")" + _OPENING + rb")" + _VALUE
)
# What a log writes before each line ends where its text begins: at a quote, or else not within a word.
_PREFIX = re.compile(rb"[^'\"\\]*(?:(?=\\?['\"])|(?<![\w-]))")
_SAME_DIGITS = bytes.maketrans(b"123456789", b"000000000")
# Text without any of these, in small letters, has nothing that looks like a secret.
_MARKS = (
    *b"hf_ hf- sk- gho_ ghp_ ghs_ ghu_ ghr_ akia bearer auth_token auth-token access_token".split(),
    *b"access-token api_key api-key apikey passw passphrase secret".split(),
    b"api key",
)


def is_secret_variable(name: str, value: str) -> bool:
    """Return whether an environment variable of this name and value holds a secret rather than a switch."""
    return _VARIABLE.fullmatch(name) is not None and value.lower() not in _SWITCHES


def is_secret_flag(name: str) -> bool:
    """Return whether a flag or setting of this name takes a secret."""
    return _FLAG.fullmatch(name.replace("_", "-")) is not None


def holds_issued_key(text: str) -> bool:
    """Return whether a text holds a key in a form that a well-known issuer gives them."""
    return _ISSUED.search(text.encode(errors="replace")) is not None


def secrets_of(names: Collection[str] = ()) -> tuple[str, ...]:
    """Return the secrets in this process's environment, longest first: by these names, and by their looks."""
    found = {
        value
        for name, value in os.environ.items()
        if (name in names or is_secret_variable(name, value)) and len(value) >= SHORTEST_CHARACTERS
    }
    return tuple(sorted(found, key=lambda value: (-len(value), value)))


def redacted(value: Any, secrets: Sequence[str]) -> Any:
    """Return JSON data without these secrets, and without the text of settings that take one."""
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, REDACTED)
        return value
    if isinstance(value, Mapping):
        return {
            key: REDACTED
            if part and isinstance(part, str) and is_secret_flag(str(key))
            else redacted(part, secrets)
            for key, part in value.items()
        }
    return [redacted(part, secrets) for part in value] if isinstance(value, list | tuple) else value


def redacted_log_line(line: str, secrets: Sequence[str]) -> str:
    """Return a line of a log, or several, without these secrets, and without what looks like one."""
    cleaned = _cleaned([line.encode(errors="surrogateescape")], secrets)
    return b"".join(cleaned).decode(errors="surrogateescape")


def redact_log(path: Path, secrets: Sequence[str]) -> None:
    """Take secrets, and what looks like one, out of a finished log; a log without any is left as it is.

    From then on others may read it as they may read the files beside it.
    """
    try:
        with path.open("rb") as log:
            blocks, same = itertools.tee(_blocks(log))
            if any(map(operator.ne, same, _cleaned(blocks, secrets))):
                log.seek(0)
                write_bytes(path, b"".join(_cleaned(_blocks(log), secrets)))
        # As a new file in this folder: a folder's own mode tells the umask it was made under.
        path.chmod(path.parent.stat().st_mode & 0o666)
    except FileNotFoundError:
        return
    except OSError:
        # What cannot be written anew must not stay as it is: emptying a file needs no room.
        with contextlib.suppress(OSError):
            os.truncate(path, 0)
        raise


def _blocks(log: BinaryIO) -> Iterator[bytes]:
    """Yield a log in blocks of whole lines."""
    while block := log.read(_BLOCK_BYTES):
        yield block + log.readline()


def _cleaned(blocks: Iterable[bytes], secrets: Sequence[str]) -> Iterator[bytes]:
    """Yield blocks of whole lines without secrets; a key and its value may stand in two of them."""
    exact = [secret.encode(errors="surrogateescape") for secret in secrets]
    blank = REDACTED.encode()

    def marked(text: bytes) -> bool:
        small = text.lower()
        return any(secret in text for secret in exact) or any(mark in small for mark in _MARKS)

    def cleaned(line: bytes, prefix_bytes: int | None) -> bytes:
        # What is known goes first: a value by its looks may end before the secret does.
        for secret in exact:
            line = line.replace(secret, blank)
        value = None if prefix_bytes is None else _NEXT_VALUE.match(line, prefix_bytes)
        head, rest = (line[: value.end("before")] + blank, line[value.end() :]) if value else (b"", line)
        return head + _LOGGED.sub(lambda found: (found["before"] or b"") + blank, rest)

    flag: bytes | None = None  # the line of a key whose value is still to come
    for block in blocks:
        if flag is None and not marked(block):
            yield block
            continue
        lines = []
        for line in block.splitlines(keepends=True):
            prefix_bytes = None if flag is None else _shared_prefix_bytes(flag, line)
            if (flag is not None or marked(line)) and line[prefix_bytes:].strip():
                line = cleaned(line, prefix_bytes)
                flag = line if _VALUE_FOLLOWS.search(line.rstrip()[-_LONGEST_FLAG_BYTES:]) else None
            lines.append(line)
        yield b"".join(lines)


def _shared_prefix_bytes(before: bytes, line: bytes) -> int:
    """Return how much of a line is what its log writes before each, digits of a time aside."""
    pairs = zip(before[: len(line)].translate(_SAME_DIGITS), line.translate(_SAME_DIGITS), strict=False)
    found = _PREFIX.match(
        bytes(one for one, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    )
    return found.end() if found else 0

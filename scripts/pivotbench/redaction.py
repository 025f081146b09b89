"""Secrets live in the user's environment alone: what is taken for one, and text without them.

A study names a variable; the server gets its value when it is started, and every file that is written of it
goes without.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
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
# Nor is a value what code says of one: api_key=self.api_key.
_NO_VALUE = rb"(?:(?:none|null|true|false|str|optional)\b|(?:[a-z_]\w*\.)+\w*?" + _NAME + rb"(?![\w.~+/=-]))"
_LOGGED = re.compile(
    _KEY_FORM
    + rb"|(?<=\b[Bb]earer )[\w.~+/-]{8,}=*"
    + rb"|(?P<before>(?i:--[\w-]*"
    + _NAME
    + rb"[ =]\s*|"
    + _NAME
    + rb"(?:\\?['\"]\s*,|\\?['\"]?\s*[:=])\s*)(?:Some\()?(?P<quote>\\?['\"])?)"
    + rb"(?(quote)(?:(?!(?P=quote))(?:\\.|.))+|(?i:(?!"
    + _NO_VALUE
    + rb"))[^\s'\"\\,(){}\[\]<=][^\s'\",)}\]]*)"
)
# A list with an item a line: '--api-key', and the key on the next one.
_VALUE_FOLLOWS = re.compile(rb"(?i:" + _NAME + rb")\\?['\"]\s*,\s*\Z")
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
    return _cleaner(secrets)(line.encode(errors="surrogateescape")).decode(errors="surrogateescape")


def redact_log(path: Path, secrets: Sequence[str]) -> None:
    """Take secrets, and what looks like one, out of a finished log; a log without any is left as it is.

    From then on others may read it as they may read the files beside it.
    """
    clean = _cleaner(secrets)
    try:
        with path.open("rb") as log:
            if any(clean(block) is not block for block in _blocks(log)):
                log.seek(0)
                write_bytes(path, b"".join(map(clean, _blocks(log))))
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
    """Yield a log in blocks of whole lines, no key apart from its value."""
    while block := log.read(_BLOCK_BYTES):
        block += log.readline()
        while _value_follows(block[block.rfind(b"\n", 0, -1) + 1 :]) and (line := log.readline()):
            block += line
        yield block


def _value_follows(line: bytes) -> bool:
    """Return whether a line ends with the name of a key whose value is on the next one."""
    return line.rstrip().endswith(b",") and _VALUE_FOLLOWS.search(line) is not None


def _whole_values(text: bytes) -> list[bytes]:
    """Return a text in lines, a key's name and its value in one."""
    lines: list[bytes] = []
    for line in text.splitlines(keepends=True):
        if lines and _value_follows(lines[-1]):
            lines[-1] += line
        else:
            lines.append(line)
    return lines


def _cleaner(secrets: Sequence[str]) -> Callable[[bytes], bytes]:
    """Return what takes secrets out of text, and returns the same object where it holds none."""
    exact = [secret.encode(errors="surrogateescape") for secret in secrets]
    blank = REDACTED.encode()

    def marked(text: bytes) -> bool:
        small = text.lower()
        return any(secret in text for secret in exact) or any(mark in small for mark in _MARKS)

    def cleaned(line: bytes) -> bytes:
        # What is known goes first: a value by its looks may end before the secret does.
        for secret in exact:
            line = line.replace(secret, blank)
        return _LOGGED.sub(lambda found: (found["before"] or b"") + blank, line)

    def clean(text: bytes) -> bytes:
        if not marked(text):
            return text
        lines = [cleaned(line) if marked(line) else line for line in _whole_values(text)]
        whole = b"".join(lines)
        return text if whole == text else whole

    return clean

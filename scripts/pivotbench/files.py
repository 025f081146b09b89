"""Canonical JSON, fingerprints, and files that are either whole or absent."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import hashlib
import json
import os
from pathlib import Path
from typing import Any, BinaryIO

import orjson


def canonical_json(value: Any) -> str:
    """Return one spelling for equal values: sorted keys, no spaces, no NaN.

    Raises ValueError for NaN and infinities, which JSON cannot carry.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def fingerprint(value: Any) -> str:
    """Return the first 16 hex digits of the SHA-256 of ``value``'s canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:16]


def sha256_of_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes as 64 hex digits."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def write_bytes(path: Path, data: bytes) -> None:
    """Write ``data`` so that a reader sees the old file or the new one, never a part.

    The bytes are on disk before the name points at them, so a power cut cannot leave an empty file. Parts
    left by writers that were killed go. Raises OSError that names ``path``.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for left in path.parent.glob(f".{glob.escape(path.name)}.*.partial"):
            _remove_abandoned(left)
        try:
            with _locked(partial) as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
                partial.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _locked(partial: Path) -> BinaryIO:
    """Open a part for writing, locked for as long as its writer lives, where the file system has locks."""
    while True:
        stream = partial.open("wb")
        with contextlib.suppress(OSError):
            fcntl.flock(stream, fcntl.LOCK_EX)
        if os.fstat(stream.fileno()).st_nlink:  # else taken for abandoned before it was locked
            return stream
        stream.close()


def _remove_abandoned(partial: Path) -> None:
    with contextlib.suppress(OSError), partial.open("rb") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        partial.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text whole or not at all; see write_bytes."""
    write_bytes(path, text.encode())


def write_json(path: Path, value: Any) -> None:
    """Write indented JSON whole or not at all; raises ValueError for NaN and infinities."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """Return the JSON value in ``path``; raises OSError or ValueError.

    What orjson is too strict for (an infinity in a model's config.json) is read as Python does.
    """
    data = path.read_bytes()
    try:
        return orjson.loads(data)
    except ValueError:
        return json.loads(data.decode("utf-8"))

"""What the processes of one client tell each other: a length, then a pickle. Both ends are our own code."""

from __future__ import annotations

import asyncio
import pickle
import struct
from dataclasses import dataclass
from typing import Any

from pivotbench.client.dialects import Ask
from pivotbench.client.record import Identity
from pivotbench.engines.endpoints import Dialect

LENGTH = struct.Struct("!I")


@dataclass(frozen=True)
class Send:
    """To a member: carry this exchange."""

    number: int
    identity: Identity
    ask: Ask
    dialect: Dialect
    origin: float


@dataclass(frozen=True)
class Cut:
    """To a member: end this exchange where it is."""

    number: int


@dataclass(frozen=True)
class End:
    """To a member: report a last time and end. From it: ready."""


@dataclass(frozen=True)
class Progress:
    """From a member: the chunks that an exchange got since the last report, field by field.

    ``outcome`` is what else an exchange that is over has become: values of its attributes.
    """

    number: int
    seconds: list[float]
    texts: list[str]
    tokens: list[int]
    outcome: dict[str, Any] | None


@dataclass(frozen=True)
class Lag:
    """From a member: its event loop's lag since the last report, as LagSampler keeps it."""

    samples: list[tuple[float, float]]


def pack(message: Any) -> bytes:
    """Return a message as the bytes that carry it."""
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(data)) + data


async def receive(reader: asyncio.StreamReader) -> Any:
    """Return the next message. Raises EOFError when the other end is gone."""
    try:
        (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
        return pickle.loads(await reader.readexactly(length))
    except (asyncio.IncompleteReadError, ConnectionError):
        raise EOFError from None

"""When bytes reached this machine: the kernel's own time stamp, and not when a busy client got to read them.

Linux stamps each packet as it comes in and hands the stamp of the newest one over with the bytes
(SO_TIMESTAMPNS, socket(7); on TCP since Linux 4.16). Where a system has no such stamp, the time of reading
stands in for it.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import sys
import time

# The "new" option has 64-bit seconds on every architecture (include/uapi/asm-generic/socket.h).
SO_TIMESTAMPNS_NEW = 64
STAMP = struct.Struct("@qq")
# Two readings of two clocks are never so far apart, nor is a packet so much older than the one before it.
CLOCK_SET_SECONDS = 1.0
ANCILLARY_BYTES = socket.CMSG_SPACE(STAMP.size)

Ancillary = list[tuple[int, int, bytes]]


def ask_for_stamps(sock: socket.socket) -> None:
    """Have the kernel stamp what this socket receives, where it can."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS_NEW, 1)


def arrival_seconds(ancillary: Ancillary, earliest: float) -> float:
    """Return when bytes that were just read arrived, in seconds of CLOCK_MONOTONIC.

    The kernel stamps with CLOCK_REALTIME; the age of the stamp is taken off the time now, so that setting
    the clock matters only while a packet waits. ``earliest`` (the arrival before, or the request's leaving)
    and now bound it; for a stamp of long before ``earliest``, the clock having been set, the time of reading
    stands in.
    """
    now = time.monotonic()
    for _, kind, data in ancillary:
        if kind == SO_TIMESTAMPNS_NEW:
            seconds, nanoseconds = STAMP.unpack(data)
            age: float = (time.time_ns() - seconds * 1_000_000_000 - nanoseconds) * 1e-9
            if now - age < earliest - CLOCK_SET_SECONDS:
                return now
            return min(now, max(earliest, now - age))
    return now

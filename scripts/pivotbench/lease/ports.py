"""The loopback port of a server: chosen before its start, and closed after its end."""

from __future__ import annotations

import random
import socket
from pathlib import Path

from pivotbench.lease.processes import Identity, named

FIRST_PORT = 16000


def free_port() -> int:
    """Return a free loopback port that the kernel hands out to nobody else.

    A server binds its port a minute or more after it was chosen. One out of the kernel's own range may by
    then be the local end of somebody's connection.
    """
    handed_out_from = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for port in random.sample(range(FIRST_PORT, max(handed_out_from, FIRST_PORT + 1000)), 200):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise RuntimeError("no free port for the server")


def port_is_closed(url: str | None) -> bool:
    """Return whether nothing accepts connections at the server's address any more."""
    if url is None:
        return True
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(_address(url)) != 0


def listeners(url: str) -> list[str]:
    """Return who listens at the server's address, by name and pid, as far as this user may see."""
    import psutil

    try:
        found = psutil.net_connections("tcp4")
    except psutil.Error:
        return []
    _, port = _address(url)
    pids = {
        c.pid for c in found if c.pid and c.status == psutil.CONN_LISTEN and c.laddr and c.laddr.port == port
    }
    return [named(process) for pid in sorted(pids) if (process := Identity.of(pid))]


def _address(url: str) -> tuple[str, int]:
    host, port = url.removeprefix("http://").rstrip("/").rsplit(":", 1)
    return host, int(port)

"""The port a server is given."""

from __future__ import annotations

from pathlib import Path

from pivotbench.lease.ports import free_port


def test_a_port_is_not_one_that_the_kernel_hands_out_meanwhile() -> None:
    """A server binds it a minute later; by then one of those may be the end of somebody's connection."""
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert all(1024 <= free_port() < first for _ in range(20))

"""Processes by identity: which are ours, whether they live, and how they are ended.

A bare pid may be reused within seconds; a pid together with its kernel start time is not.
Everything is read from /proc, so it holds on Linux alone.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

MARKER = "PIVOTBENCH_LAUNCH"


@dataclass(frozen=True, order=True)
class Identity:
    """A process: its pid and its start time in clock ticks since boot."""

    pid: int
    start_ticks: int

    def __str__(self) -> str:
        return f"{self.pid}:{self.start_ticks}"

    @classmethod
    def parse(cls, text: str) -> Identity:
        """Return the identity written by ``str``; raises ValueError."""
        pid, ticks = text.split(":")
        return cls(int(pid), int(ticks))

    @classmethod
    def of(cls, pid: int) -> Identity | None:
        """Return the identity of a running process, None for a dead one or a zombie."""
        stat = _stat(pid)
        return None if stat is None or stat.state in "ZX" else cls(pid, stat.start_ticks)

    @classmethod
    def own(cls) -> Identity:
        """Return the identity of the calling process."""
        me = cls.of(os.getpid())
        assert me is not None
        return me

    def alive(self) -> bool:
        """Return whether this very process runs still; a zombie does not."""
        return Identity.of(self.pid) == self


@dataclass(frozen=True)
class _Stat:
    state: str
    parent: int
    start_ticks: int


def _stat(pid: int) -> _Stat | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    fields = text.rsplit(")", 1)[1].split()
    return _Stat(state=fields[0], parent=int(fields[1]), start_ticks=int(fields[19]))


def named(process: Identity) -> str:
    """Return a process in words: its name and pid."""
    try:
        name = Path(f"/proc/{process.pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        name = "a process that has ended"
    return f"{name} (pid {process.pid})"


def _pids() -> list[int]:
    return [int(name) for entry in os.scandir("/proc") if (name := entry.name).isdigit()]


def descendants(pid: int) -> set[Identity]:
    """Return all living descendants of ``pid``, however deep, whatever their session."""
    children: dict[int, list[int]] = {}
    stats = {p: s for p in _pids() if (s := _stat(p)) is not None}
    for child, stat in stats.items():
        children.setdefault(stat.parent, []).append(child)
    found: set[Identity] = set()
    pending = list(children.get(pid, ()))
    while pending:
        child = pending.pop()
        pending.extend(children.get(child, ()))
        if stats[child].state not in "ZX":
            found.add(Identity(child, stats[child].start_ticks))
    return found


def marked_processes() -> dict[Identity, str]:
    """Return every readable process that carries our marker, with its value.

    The marker is in the environment a process was started with, so it survives a change of
    session, of parent and of name; only a process that cleaned its environment escapes it.
    """
    prefix = f"{MARKER}=".encode()
    found: dict[Identity, str] = {}
    for pid in _pids():
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        if prefix not in environment:
            continue
        for entry in environment.split(b"\0"):
            if entry.startswith(prefix) and (identity := Identity.of(pid)):
                found[identity] = entry[len(prefix) :].decode(errors="replace")
    return found


def marked(value: str) -> set[Identity]:
    """Return the living processes whose marker has this value."""
    return {identity for identity, found in marked_processes().items() if found == value}


def resident_mib(pid: int) -> int:
    """Return a process's resident memory in MiB, 0 where it cannot be read."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") >> 20


def send(processes: Iterable[Identity], signal_number: signal.Signals) -> None:
    """Send a signal to each process that is still the one meant."""
    for process in processes:
        if process.alive():
            try:
                os.kill(process.pid, signal_number)
            except (ProcessLookupError, PermissionError):
                continue


def reap(keep: frozenset[int] = frozenset()) -> None:
    """Collect children that have ended, those adopted from dead parents included.

    Children in ``keep`` are left for whoever asks for their exit code.
    """
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None or ended.si_pid in keep:
            return
        os.waitpid(ended.si_pid, 0)


@dataclass(frozen=True)
class Ending:
    """How a set of processes was ended: signals sent, with seconds each was given, and who stayed."""

    signals: tuple[tuple[str, float], ...]
    left: tuple[Identity, ...]


def end(
    find: Callable[[], set[Identity]],
    *,
    grace_seconds: float,
    kill_seconds: float = 5.0,
    collect: Callable[[], None] = reap,
) -> Ending:
    """End everything ``find`` returns: SIGTERM and a grace, then SIGKILL until nothing is left.

    ``find`` is asked again and again, since a dying server may still start processes.
    ``grace_seconds`` 0 goes straight to SIGKILL.
    """
    signals: list[tuple[str, float]] = []
    steps = [(signal.SIGTERM, grace_seconds)] if grace_seconds > 0 else []
    for number, limit_seconds in [*steps, (signal.SIGKILL, kill_seconds)]:
        began = time.monotonic()
        told: set[Identity] = set()
        while True:
            left = find()
            if not left:
                break
            fresh = left if number is signal.SIGKILL else left - told
            send(fresh, number)
            told |= left
            if time.monotonic() - began > limit_seconds:
                break
            time.sleep(0.03)
            collect()
        if told:
            signals.append((number.name, round(time.monotonic() - began, 3)))
        if not left:
            return Ending(tuple(signals), ())
    return Ending(tuple(signals), tuple(sorted(find())))

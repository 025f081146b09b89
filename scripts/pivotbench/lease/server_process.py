"""One server's processes: started, found again wherever they went, their log and their end."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from pivotbench.lease.ending import Ended, end_launch, launch_processes
from pivotbench.lease.processes import MARKER, Identity, descendants, reap, resident_mib
from pivotbench.lease.state import LaunchOrder, marker_value

LOG_PART_BYTES = 16 << 20
PR_SET_PDEATHSIG = 1


class ServerProcess:
    """The process that a supervisor started, and all that came of it.

    ``guard`` is the supervisor's other child: never one of the server's, and collected by its owner.
    """

    def __init__(self, order: LaunchOrder) -> None:
        self.order = order
        self.log = Path(order.log)
        self.process: subprocess.Popen[bytes] | None = None
        self.guard: subprocess.Popen[bytes] | None = None
        self.known: set[Identity] = set()

    def start(self, argv: Sequence[str], environment: dict[str, str]) -> None:
        """Start the server with its output in the log; raises OSError where it cannot be started.

        It writes there by itself, so that it never waits for a reader and its last words outlive a killed
        supervisor. What it writes is cleaned of secrets when it has ended; until then the file is its user's.
        """
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with open(self.log, "wb", opener=_private) as log:
            self.process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**environment, MARKER: marker_value(self.order.launch_id)},
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )

    def processes(self) -> set[Identity]:
        """Return every living process of the server, by descent, by marker and from memory."""
        mine = {Identity.own()} | ({i} if self.guard and (i := Identity.of(self.guard.pid)) else set())
        found = descendants(os.getpid()) | launch_processes(self.order)
        return (found | {p for p in self.known if p.alive()}) - mine

    def note_processes(self) -> bool:
        """Remember the processes there are; return whether one is new."""
        found = self.processes() - self.known
        self.known |= found
        return bool(found)

    def resident_mib(self) -> int:
        """Return the memory that the server's processes hold on the host, in MiB."""
        return sum(resident_mib(p.pid) for p in self.processes())

    def log_lines(self) -> list[str]:
        """Return the log from its beginning, where causes stand, without the middle of a huge one."""
        try:
            with self.log.open("rb") as stream:
                head = stream.read(LOG_PART_BYTES)
                size = stream.seek(0, os.SEEK_END)
                stream.seek(max(len(head), size - LOG_PART_BYTES))
                text = head + stream.read()
        except OSError:
            return []
        return text.decode(errors="replace").splitlines()

    def end(self, grace_seconds: float) -> Ended:
        """End all of the server: its container by stop and kill, processes by SIGTERM and SIGKILL."""
        return end_launch(self.order, self.processes, grace_seconds=grace_seconds, collect=self._collect)

    def _collect(self) -> None:
        children = [child for child in (self.process, self.guard) if child is not None]
        for child in children:
            child.poll()
        reap(keep=frozenset(child.pid for child in children if child.returncode is None))


def _private(path: str, flags: int) -> int:
    descriptor = os.open(path, flags, 0o600)
    os.fchmod(descriptor, 0o600)  # it may be there already, of a killed run
    return descriptor


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

"""Supervisors and guards as forks of whoever asks for them, who has the library loaded already.

What is saved is the start of an interpreter. Each is a process of its own as ever: in its own session, with
no open file but those it is handed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import IO

from pivotbench.lease import ensure, guard
from pivotbench.lease.processes import Identity
from pivotbench.lease.supervisor import supervise

PR_SET_NAME = 15
BODIES: dict[str, Callable[..., None]] = {
    "supervise.py": lambda folder: supervise(Path(folder)),
    "guard.py": lambda folder, supervisor: guard.guard(Path(folder), Identity.parse(supervisor)),
}


def fork_the_watch() -> None:
    """From now on this process, and those it forks, start supervisors and guards by a fork."""
    for module in (ensure, guard):
        module.subprocess = SimpleNamespace(Popen=Fork, DEVNULL=None)  # type: ignore[attr-defined]


class Fork:
    """As much of a Popen as supervisors and guards are started and watched by; named as its script is."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        stdin: None,  # noqa: ARG002 (nobody hands it one)
        start_new_session: bool,
        stdout: IO[bytes] | None = None,
        stderr: IO[bytes] | None = None,
        pass_fds: Iterable[int] = (),
    ) -> None:
        """Start ``argv``: an interpreter, one of the scripts of BODIES, its words."""
        assert start_new_session
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            code = 70
            try:
                outputs = [1 if stdout is None else stdout.fileno(), 2 if stderr is None else stderr.fileno()]
                _begin(Path(argv[1]).name, outputs, {*pass_fds})
                BODIES[Path(argv[1]).name](*argv[2:])
                code = 0
            except BaseException:
                sys.excepthook(*sys.exc_info())
            finally:
                os._exit(code)

    def poll(self) -> int | None:
        """Return the exit code, None while it runs."""
        return self._collect(os.WNOHANG)

    def wait(self) -> int | None:
        """Wait for its end."""
        return self._collect(0)

    def kill(self) -> None:
        """Send SIGKILL, where it has not ended."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def _collect(self, options: int) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, options)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


def _begin(name: str, outputs: Sequence[int], kept: set[int]) -> None:
    os.setsid()
    ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode())
    for number, output in enumerate((os.open(os.devnull, os.O_RDONLY), *outputs)):
        os.dup2(output, number)
    for number in [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]:
        if number > 2 and number not in kept:
            with contextlib.suppress(OSError):  # the one that listed them is closed already
                os.close(number)

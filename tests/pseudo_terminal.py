"""A terminal without a window: what a program shows on it, and the bytes it sent to it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyte


class PseudoTerminal:
    """A command at work on a terminal of its own; ``screen`` is what a person sees of it."""

    def __init__(
        self, command: Sequence[str], *, cwd: Path, env: Mapping[str, str], columns: int = 100, rows: int = 40
    ) -> None:
        self.columns, self.rows = columns, rows
        self.master, slave = pty.openpty()
        self.resize(columns)
        self.settings = termios.tcgetattr(self.master)
        self.screen = pyte.HistoryScreen(columns, rows, history=2000)
        self._stream = pyte.ByteStream(self.screen)
        self.sent = b""
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**env, "TERM": "xterm-256color"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)

    def resize(self, columns: int) -> None:
        """Give the terminal another width."""
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", self.rows, columns, 0, 0))

    def look_until(self, seen: Callable[[str], Any], seconds: float = 120.0) -> str:
        """Return the screen as soon as ``seen`` is true of it; fail after ``seconds``."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if seen(text := self.text()):
                return text
            assert self.read(), f"it ended before that was seen:\n{self.everything()}"
        raise AssertionError(f"not seen within {seconds:g} s:\n{self.text()}")

    def read(self) -> bool:
        """Take what was sent; return whether more may come."""
        if select.select([self.master], [], [], 0.1)[0]:
            try:
                data = os.read(self.master, 1 << 16)
            except OSError:  # Linux says so where no process has the terminal any more
                return False
            self.sent += data
            self._stream.feed(data)
        return True

    def end(self, seconds: float = 240.0) -> int:
        """Read to the end; return the exit code."""
        deadline = time.monotonic() + seconds
        while self.read():
            assert time.monotonic() < deadline, self.text()
        return self.process.wait(timeout=10)

    def text(self) -> str:
        """What is on the screen now."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip()

    def everything(self) -> str:
        """What is on the screen and what was scrolled off it."""
        past = ["".join(row[x].data for x in range(self.columns)).rstrip() for row in self.screen.history.top]
        return "\n".join([*past, self.text()])

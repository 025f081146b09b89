"""Ways to go wrong: crash with a log, leave orphans, hand the port to somebody else."""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path
from typing import NoReturn

from sglang.script import Script

LOGS = Path(__file__).resolve().parents[3] / "data" / "sglang-logs"
ORPHAN = "import sys, time; kept = bytearray(b'x') * (int(sys.argv[1]) << 20); time.sleep(float(sys.argv[2]))"


class Events:
    """An append-only file of what servers did: ``TIME WHAT NAME PID``, one line an event."""

    def __init__(self, path: str | None, name: str) -> None:
        self.path = path
        self.name = name

    def write(self, what: str) -> None:
        """Append one event in one write, so that lines of several servers never mix."""
        if not self.path:
            return
        line = f"{time.time():.3f} {what} {self.name} {os.getpid()}\n"
        stream = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.write(stream, line.encode())
        os.close(stream)


def say(text: str) -> None:
    """Log one line as SGLang does."""
    print(f"[{time.strftime('%Y-%m-%d %H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def crash(script: Script, events: Events) -> NoReturn:
    """Print the crash log, then end by exit code, or by signal where the code is negative."""
    if script.crash_log:
        path = Path(script.crash_log)
        text = (path if path.is_absolute() else LOGS / path).read_text(encoding="utf-8")
        print(text, end="", file=sys.stderr, flush=True)
    events.write("STOP")
    if script.crash_exit < 0:
        os.kill(os.getpid(), -script.crash_exit)
        time.sleep(60)
    os._exit(script.crash_exit)


def leave_orphans(script: Script) -> None:
    """Start workers in sessions of their own, which outlive this process and hold memory."""
    for _ in range(script.orphans):
        argv = [sys.executable, "-S", "-c", ORPHAN, str(script.orphan_mib), str(script.orphan_seconds)]
        env = {} if script.orphan_clean_env else dict(os.environ)
        os.posix_spawn(sys.executable, argv, env, setsid=True)


def hand_over(listening: socket.socket, holder: str) -> None:
    """Give the listening socket to the process behind the unix socket ``holder``."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as channel:
        channel.connect(holder)
        socket.send_fds(channel, [b"port"], [listening.fileno()])
        channel.recv(1)

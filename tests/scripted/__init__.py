"""Tools for tests that use the scripted server: engines to name, events to read, a port to keep."""

from __future__ import annotations

import http.client
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

HERE = Path(__file__).parent
PYTHON = HERE / "bin" / "python3"
SITE = HERE / "site"
LOGS = HERE.parent / "data" / "sglang-logs"


def install(folder: Path, version: str = "0.5.16") -> Path:
    """Make an engine environment in ``folder`` whose version a test may change; gives its interpreter."""
    (folder / "bin").mkdir(parents=True)
    shutil.copy2(PYTHON, folder / "bin" / "python3")
    (folder / "site").mkdir()
    (folder / "site" / "sglang").symlink_to(SITE / "sglang")
    (folder / "lib" / "python3").mkdir(parents=True)
    (folder / "lib" / "python3" / "site-packages").symlink_to(folder / "site")
    upgrade(folder, version)
    return folder / "bin" / "python3"


def upgrade(folder: Path, version: str) -> None:
    """Give the engine installed in ``folder`` another version."""
    for old in (folder / "site").glob("sglang-*.dist-info"):
        shutil.rmtree(old)
    new = folder / "site" / f"sglang-{version}.dist-info"
    new.mkdir()
    text = f"Metadata-Version: 2.4\nName: sglang\nVersion: {version}\n"
    (new / "METADATA").write_text(text, encoding="utf-8")


@contextmanager
def served(*flags: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Give a warm server of the name ``ours`` and its port; it is killed at the end."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [str(PYTHON), "-m", "sglang.launch_server", "--model-path", "m", "--port", str(port)]
    process = subprocess.Popen(
        [*command, "--served-model-name", "ours", *flags],
        env={**os.environ, "PIVOTBENCH_TEST_PYTHON": sys.executable},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 20
        while not _warm(port):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
        yield process, port
    finally:
        process.kill()
        process.wait()


def _warm(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/health_generate")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


@dataclass(frozen=True)
class Event:
    """One line of a ``script-events`` file; ``what`` is START, READY or STOP."""

    seconds: float
    what: str
    name: str
    pid: int


def read_events(path: Path) -> list[Event]:
    """Return the events of all servers in the order they happened; none where no server started."""
    if not path.exists():
        return []
    rows = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
    events = [Event(float(at), what, name, int(pid)) for at, what, name, pid in rows]
    return sorted(events, key=lambda event: event.seconds)


def launches(path: Path) -> int:
    """Return how many servers were started."""
    return sum(event.what == "START" for event in read_events(path))


def overlaps(path: Path) -> list[tuple[int, int]]:
    """Return pairs of pids of which the second started before the first had logged its STOP.

    A server ended by SIGKILL logs none: such a pair means something only where none was killed.
    """
    alive: list[int] = []
    pairs: list[tuple[int, int]] = []
    for event in read_events(path):
        if event.what == "START":
            pairs += [(pid, event.pid) for pid in alive]
            alive.append(event.pid)
        elif event.what == "STOP" and event.pid in alive:
            alive.remove(event.pid)
    return pairs


class PortHolder:
    """Receives a server's listening socket (``keep-port=<path>``) and keeps it open until left."""

    def __init__(self) -> None:
        # A unix socket's path holds about 100 characters: too few for a test's own folder.
        self.folder = Path(tempfile.mkdtemp(prefix="hold"))
        self.path = self.folder / "s"
        self.received = threading.Event()
        self._kept: list[int] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)

    def __enter__(self) -> PortHolder:
        self._socket.bind(str(self.path))
        self._socket.listen()
        threading.Thread(target=self._hold, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()
        for kept in self._kept:
            os.close(kept)
        shutil.rmtree(self.folder)

    def _hold(self) -> None:
        try:
            channel, _ = self._socket.accept()
        except OSError:
            return
        with channel:
            _, sockets, _, _ = socket.recv_fds(channel, 16, 1)
            self._kept += sockets
            self.received.set()
            channel.sendall(b"k")

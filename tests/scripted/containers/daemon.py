"""A container daemon for tests: images are folders, containers are processes of its own.

As with the real one, a container gets no variable that was not handed to it, belongs to nobody who asked for
it, outlives its client, and dies as a whole with its first process. It sees all of the host's files.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

HERE = Path(__file__).parent
SIGN = "SCRIPTED_CONTAINER"
VERSION_FILES = "site/sglang-*.dist-info"


@dataclass
class Running:
    """One container: its name and its first process."""

    name: str
    process: subprocess.Popen[str]


class Daemon:
    """Answers ``docker`` beside this file while the context is open; ``images`` maps names to folders."""

    def __init__(self, images: dict[str, Path], *, pullable: dict[str, Path] | None = None) -> None:
        self.images = dict(images)
        self.pullable = pullable or {}
        self.containers: dict[str, Running] = {}
        self.asked: list[dict[str, Any]] = []
        self.folder = Path(tempfile.mkdtemp(prefix="dock"))
        self.environment = {
            "PIVOTBENCH_TEST_DOCKER": str(self.folder / "s"),
            "PATH": f"{HERE}{os.pathsep}{os.environ['PATH']}",
            "PIVOTBENCH_TEST_PYTHON": sys.executable,
        }
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)

    def __enter__(self) -> Daemon:
        self._socket.bind(self.environment["PIVOTBENCH_TEST_DOCKER"])
        self._socket.listen(16)
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for container in list(self.containers.values()):
            self._signal(container, signal.SIGKILL)
        self._socket.close()
        shutil.rmtree(self.folder)

    def asked_for(self, command: str) -> list[dict[str, Any]]:
        """Return what was asked by one command."""
        return [request for request in self.asked if request["command"] == command]

    def running(self) -> dict[str, int]:
        """Return the containers there are: their first processes, by name."""
        return {name: container.process.pid for name, container in list(self.containers.items())}

    def _serve(self) -> None:
        while True:
            try:
                channel, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(channel,), daemon=True).start()

    def _answer(self, channel: socket.socket) -> None:
        # A client that is gone is no matter of the container's.
        with contextlib.suppress(OSError), channel, channel.makefile("rw", encoding="utf-8") as stream:
            request = json.loads(stream.readline())
            self.asked.append(request)
            code = getattr(self, f"_{request['command']}")(request, stream)
            self._say(stream, exit=code)

    @staticmethod
    def _say(stream: Any, **words: Any) -> None:
        stream.write(json.dumps(words) + "\n")
        stream.flush()

    def _refuse(self, stream: Any, why: str, code: int = 1) -> int:
        self._say(stream, text=f"docker: Error response from daemon: {why}", error=True)
        return code

    def _run(self, asked: dict[str, Any], stream: Any) -> int:
        image, *words = asked["rest"]
        if image not in self.images:
            return self._refuse(stream, f"No such image: {image}", 125)
        name = asked["name"] or f"unnamed-{len(self.asked)}"
        if name in self.containers:
            return self._refuse(stream, f'Conflict. The container name "/{name}" is already in use', 125)
        for mount in asked["mount"]:
            fields = dict(part.partition("=")[::2] for part in next(csv.reader([mount])))
            if not Path(fields["source"]).exists():
                why = 'invalid mount config for type "bind": bind source path does not exist'
                return self._refuse(stream, f"{why}: {fields['source']}", 125)
        folder = self.images[image]
        environment = {
            "PATH": f"{folder / 'bin'}:/usr/bin:/bin",
            "PIVOTBENCH_TEST_PYTHON": sys.executable,
            SIGN: name,
            **dict(text.split("=", 1) for text in asked["env"]),
        }
        process = subprocess.Popen(
            [str(folder / "bin" / asked["entrypoint"]), *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=environment,
            start_new_session=True,
        )
        container = Running(name, process)
        self.containers[name] = container
        threading.Thread(target=self._end_with_first, args=(container,), daemon=True).start()
        assert process.stdout is not None
        for line in process.stdout:
            try:
                self._say(stream, text=line.rstrip("\n"))
            except OSError:
                continue  # nobody listens any more; the container goes on
        code = process.wait()
        if asked["rm"]:
            self.containers.pop(name, None)
        return 128 - code if code < 0 else code

    def _stop(self, asked: dict[str, Any], stream: Any) -> int:
        return self._end(asked, stream, (signal.SIGTERM, float(asked["t"] or 10)), (signal.SIGKILL, 5.0))

    def _kill(self, asked: dict[str, Any], stream: Any) -> int:
        number = signal.Signals(asked["signal"] or signal.SIGKILL)
        return self._end(asked, stream, (number, 5.0 if number == signal.SIGKILL else 0.0))

    def _end(self, asked: dict[str, Any], stream: Any, *steps: tuple[signal.Signals, float]) -> int:
        name = asked["rest"][0]
        if name not in self.containers:
            return self._refuse(stream, f"No such container: {name}")
        container = self.containers[name]
        for number, seconds in steps:
            self._signal(container, number)
            deadline = time.monotonic() + seconds
            while name in self.containers and time.monotonic() < deadline:
                time.sleep(0.02)
            if name not in self.containers:
                break
        self._say(stream, text=name)
        return 0

    def _rm(self, asked: dict[str, Any], stream: Any) -> int:
        return self._kill({**asked, "signal": None}, stream)

    def _ps(self, asked: dict[str, Any], stream: Any) -> int:
        key, _, pattern = (asked["filter"] or "name=").partition("=")
        assert key == "name", "only names are filtered by"
        for name in list(self.containers):
            if re.search(pattern, name):
                self._say(stream, text=name)
        return 0

    def _inspect(self, asked: dict[str, Any], stream: Any) -> int:
        name = asked["rest"][0]
        if asked["type"] == "image":
            if name not in self.images:
                return self._refuse(stream, f"No such image: {name}")
            assert asked["format"] == "{{.Id}}"
            built = next(self.images[name].glob(VERSION_FILES)).name
            self._say(stream, text=f"sha256:{self.images[name].name}-{built}")
            return 0
        if name not in self.containers:
            return self._refuse(stream, f"No such container: {name}")
        assert asked["format"] == "{{.State.Pid}}"
        self._say(stream, text=str(self.containers[name].process.pid))
        return 0

    def _pull(self, asked: dict[str, Any], stream: Any) -> int:
        name = asked["rest"][0]
        if name not in self.pullable:
            return self._refuse(stream, f"manifest for {name} not found")
        self.images[name] = self.pullable[name]
        return 0

    def _end_with_first(self, container: Running) -> None:
        """End whatever else is in a container with its first process, also what holds its output open."""
        container.process.wait()
        self._signal(container, signal.SIGKILL)

    @staticmethod
    def _signal(container: Running, number: signal.Signals) -> None:
        """Signal the first process; SIGKILL ends every process of the container, whatever its session."""
        if number != signal.SIGKILL:
            container.process.send_signal(number)
            return
        sign = f"{SIGN}={container.name}".encode()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    if sign in (entry / "environ").read_bytes().split(b"\0"):
                        os.kill(int(entry.name), signal.SIGKILL)
                except OSError:
                    continue

"""Waits, beside the supervisor's watch, until a starting server answers for itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from pivotbench.engines.base import Engine

POLL_SECONDS = 0.1


class Readiness:
    """What a starting server's address answers: nothing yet, the server (``ready``), or a stranger.

    Once ``ready`` is set, ``ready_seconds``, ``effective`` and ``phases`` say what is known of the launch.
    """

    def __init__(self, engine: Engine, served_name: str, log_lines: Callable[[], list[str]]) -> None:
        self.engine, self.served_name, self.log_lines = engine, served_name, log_lines
        self.ready = threading.Event()
        self.stranger: str | None = None
        self.ready_seconds: float | None = None
        self.effective: dict[str, Any] = {}
        self._over = threading.Event()

    def watch(self, url: str, spawned: float) -> None:
        """Ask ``url`` from a thread of its own; ``spawned`` is the monotonic time of the start."""
        threading.Thread(target=self._probe, args=(url, spawned), daemon=True).start()

    def give_up(self) -> None:
        """Stop asking."""
        self._over.set()

    def phases(self) -> list[dict[str, Any]]:
        """Return the phases of the launch that the log tells of so far."""
        return [asdict(p) for p in self.engine.launch_phases(self.log_lines())]

    def _probe(self, url: str, spawned: float) -> None:
        while not self._over.is_set():
            probe = self.engine.probe(url, self.served_name, timeout_seconds=30.0)
            if probe.state == "stranger":
                self.stranger = probe.detail
                return
            if probe.state == "ready":
                self.ready_seconds = round(time.monotonic() - spawned, 3)
                self.effective = self.engine.server_info(url, self.log_lines())
                self.ready.set()
                return
            time.sleep(POLL_SECONDS)

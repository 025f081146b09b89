"""A terminal with a picture at its bottom, above which every word of the run and its stages scrolls by.

Standard output and error of this process, and so of all it starts, go into a pipe meanwhile: whatever is
said there is written as whole lines above the picture. The cursor is never hidden and no mode of the
terminal is changed, so that nothing need be put back should this process be killed.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable

from rich.console import Console, ConsoleDimensions, RenderableType
from rich.live import Live
from rich.text import Text

# The clocks in the picture show seconds; more frames would take time from what is measured.
FRAME_SECONDS = 1.0
_END = b"\x04pivotbench: the end\n"


class _Terminal(Console):
    def show_cursor(self, show: bool = True) -> bool:  # noqa: ARG002
        return False

    @property  # type: ignore[misc]
    def size(self) -> ConsoleDimensions:
        # Its base asks the standard streams, which are pipes here.
        columns, rows = os.get_terminal_size(self.file.fileno())
        return ConsoleDimensions(columns or 80, rows or 25)


class Screen:
    """``start`` to ``stop``: ``picture`` is drawn, ``hear`` is asked whether a line is dealt with."""

    def __init__(
        self, picture: Callable[[], RenderableType], hear: Callable[[str], bool], *, colour: bool
    ) -> None:
        self.hear = hear
        self._terminal = os.dup(sys.stderr.fileno())
        file = os.fdopen(os.dup(self._terminal), "w", encoding="utf-8", errors="replace")
        self.console = _Terminal(
            file=file, no_color=None if colour else True, highlight=False, markup=False, emoji=False
        )
        self._live = Live(
            get_renderable=picture,
            console=self.console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._taken: dict[int, int] = {}
        self._pipe = -1
        self._reader: threading.Thread | None = None
        # One at a time: a line that is written while the picture is drawn would be drawn over.
        self._turn = threading.Lock()
        self._over = threading.Event()

    def start(self) -> None:
        """Take the streams and begin to draw."""
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        read, self._pipe = os.pipe()
        for number in (1, 2):
            # A standard output that goes elsewhere is somebody's file or pipe: it stays.
            if os.isatty(number):
                self._taken[number] = os.dup(number)
                os.dup2(self._pipe, number)
        self._live.start()
        self._reader = threading.Thread(target=self._read, args=(read,), daemon=True)
        self._reader.start()
        threading.Thread(target=self._draw, daemon=True).start()

    def stop(self) -> None:
        """Give the streams back when all that was said is written; nothing of the picture is left."""
        if self._reader is None:
            return
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        for number, original in self._taken.items():
            os.dup2(original, number)
            os.close(original)
        os.write(self._pipe, _END)
        self._reader.join(timeout=2.0)
        self._reader = None
        self._over.set()
        with self._turn:
            self._live.stop()
        os.close(self._pipe)

    def print(self, line: RenderableType) -> None:
        """Write a line above the picture."""
        with self._turn:
            self.console.print(line)

    def _draw(self) -> None:
        while not self._over.wait(FRAME_SECONDS):
            with self._turn:
                self._live.refresh()

    def _read(self, number: int) -> None:
        with os.fdopen(number, "rb") as pipe:
            for raw in pipe:
                line, over = raw.rstrip(b"\r\n"), raw.endswith(_END)
                # Of a line that is written over again and again, its last state.
                text = line.removesuffix(_END.rstrip()).split(b"\r")[-1].decode("utf-8", errors="replace")
                if not ((over and not text) or self.hear(text)):
                    with self._turn:
                        self.console.print(Text.from_ansi(text), soft_wrap=True)
                if over:
                    return

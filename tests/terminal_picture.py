"""Makes docs/images/terminal.svg: the default study on a pseudo terminal, as it looks after three cells.

    PYTHONPATH=scripts:tests .venv/bin/python -m terminal_picture

A few minutes; take it while nothing else runs, for the speeds in it are real.
"""

from __future__ import annotations

import io
import os
import re
import signal
import sys
import tempfile
from pathlib import Path

import pyte
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from pseudo_terminal import PseudoTerminal

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "images" / "terminal.svg"
NAMES = {"brown": "yellow", "brightblack": "bright_black", "default": ""}
DARK = TerminalTheme(
    (24, 26, 31),
    (214, 218, 226),
    [
        *((60, 64, 72), (224, 108, 117), (126, 190, 122), (220, 180, 96)),
        *((97, 160, 224), (190, 130, 210), (86, 182, 194), (200, 204, 212)),
    ],
)


def worth_a_picture(text: str) -> bool:
    """Whether three cells are over and a fourth says how far it is."""
    ended = re.findall(r"^[✓✗] ", text, re.MULTILINE)
    return len(ended) >= 3 and re.search(r"^  \w+ at concurrency", text, re.MULTILINE) is not None


def svg(screen: pyte.Screen, title: str) -> str:
    """Return what is on a screen as a picture that fetches nothing."""
    console = Console(record=True, width=screen.columns, file=io.StringIO(), force_terminal=True)
    console.print(Text(f"$ {title}", style="bold"))
    for y in range(screen.cursor.y):
        line = Text()
        for x in range(screen.columns):
            char = screen.buffer[y][x]
            line.append(
                char.data, style=f"{'bold ' * char.bold}{NAMES.get(char.fg, char.fg)}".strip() or None
            )
        console.print(line)
    drawn = console.export_svg(title="pivotbench", theme=DARK, unique_id="terminal")
    drawn = re.sub(r"\s*@font-face \{.*?\}\n|\s*<!--.*?-->", "", drawn, flags=re.DOTALL)
    return drawn.replace("Fira Code", "ui-monospace, Menlo, Consolas, DejaVu Sans Mono")


def main() -> None:
    """Run the default study up to the moment, draw it, and stop the run."""
    command = ["snakemake", "--cores", "1", "all"]
    with tempfile.TemporaryDirectory() as folder:
        terminal = PseudoTerminal(
            [sys.executable, "-m", *command, "--snakefile", str(ROOT / "Snakefile")],
            cwd=Path(folder),
            env=os.environ | {"CI": ""},
            columns=96,
        )
        terminal.look_until(worth_a_picture, seconds=900)
        PICTURE.write_text(svg(terminal.screen, " ".join(command)))
        terminal.process.send_signal(signal.SIGINT)
        terminal.end()


if __name__ == "__main__":
    main()

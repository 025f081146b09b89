"""The lines at the bottom of a terminal: how far the run is, and what is at work."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from pivotbench.lease.key import lease_name
from pivotbench.results import STAGES
from pivotbench.terminal.outcome import Outcome
from pivotbench.terminal.progress import Progress, Work, span

# Below this many columns only what is at work is named, not all that is done and to come.
NARROW = 76
# On a cluster hundreds of cells may be out at once.
SHOWN = 6
MARKS = {"ok": ("green", "✓"), "failed": ("yellow", "✗"), "skipped": ("dim", "–")}


class View:
    """A picture of ``progress``; ``held`` returns the GPUs in use by lease name, ``width`` is the names'."""

    def __init__(
        self, study: str, progress: Progress, held: Callable[[], Mapping[str, str]], width: int
    ) -> None:
        self.study, self.progress, self.held, self.width = study, progress, held, width

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        narrow = options.max_width < NARROW
        work, held = list(self.progress.work.values()), self.held()
        parts: list[RenderableType] = [Text(""), self._head(narrow)]
        for one in work[:SHOWN]:
            parts += self._lines(one, held, narrow)
        if len(work) > SHOWN:
            parts.append(Text(f"  and {len(work) - SHOWN} more at work", style="dim"))
        # The cursor rests on a line of its own: whatever ends the run, the prompt begins a line.
        yield Group(*parts, Text(""))

    def _head(self, narrow: bool) -> RenderableType:
        progress = self.progress
        phase = "" if narrow or not progress.left.known else progress.phase
        left = Text(" · ", style="dim").join(
            Text(words, style=style)
            for words, style in ((self.study, "bold"), (phase, ""), (progress.cells_words(), ""))
            if words
        )
        times = ", ".join(filter(None, [progress.elapsed_words(), progress.end_words()]))
        row: list[RenderableType] = [left]
        grid = _grid(("left", 1), ("left", None), ("right", None))
        total = progress.done + progress.left.known + progress.left.most
        row.append("" if narrow or not total else _bar(progress.done, total))
        grid.add_row(*row, Text(times, style="cyan"))
        return grid

    def _lines(self, work: Work, held: Mapping[str, str], narrow: bool) -> list[RenderableType]:
        now, at_work = self.progress.clock(), Text("●", style="cyan")
        if work.cell is None:
            step = _grid(("left", None), ("left", 1), ("right", None))
            step.add_row(at_work, Text(work.title), Text(span(now - work.began), style="cyan"))
            return [step]
        stages = Text()
        if narrow:
            stages.append(f"{work.stage or 'between stages'} ")
            stages.append(span(now - work.stage_began), style="cyan")
        else:
            stages = _stages(work, now)
        gpu = held.get(lease_name(work.cell.as_json()), "")
        grid = _row()
        grid.add_row(at_work, _name(work.title, self.width), stages, Text(gpu, style="magenta"))
        lines: list[RenderableType] = [grid]
        if work.detail:
            lines.append(_detail(work.detail))
        return lines


def _bar(done: int, total: int) -> ProgressBar:
    return ProgressBar(
        total, done, width=14, style="bright_black", complete_style="cyan", finished_style="cyan"
    )


def _detail(words: str) -> Text:
    # Logs of servers have colours of their own.
    return Text(f"  {Text.from_ansi(words).plain}", style="dim", no_wrap=True, overflow="ellipsis")


def _stages(work: Work, now: float) -> Text:
    line = Text()
    for stage in STAGES:
        if stage in work.stages_done:
            style, mark = MARKS.get(work.stages_done[stage], MARKS["ok"])
            line.append(f"{stage} ", style="dim").append(f"{mark}  ", style=style)
        elif stage == work.stage:
            line.append(f"{stage} ", style="bold").append(f"{span(now - work.stage_began)}  ", style="cyan")
        else:
            line.append(f"{stage}  ", style="dim")
    line.rstrip()
    return line


def ended(title: str, told: Outcome, seconds: float, width: int) -> RenderableType:
    """Return the lines that stay of a cell: mark, name, what became of it, how long it took."""
    style, mark = MARKS["failed" if told.failed else "ok"]
    grid = _row()
    grid.columns[2].no_wrap = False
    grid.add_row(
        Text(mark, style=style), _name(title, width), Text(told.words), Text(span(seconds), style="dim")
    )
    return grid


def _name(title: str, width: int) -> Text:
    return Text(title.ljust(width), style="bold")


def _row() -> Table:
    return _grid(("left", None), ("left", None), ("left", 1), ("right", None))


def _grid(*columns: tuple[str, int | None]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0), expand=True)
    for justify, ratio in columns:
        grid.add_column(justify=justify, ratio=ratio, no_wrap=True, overflow="ellipsis")  # type: ignore[arg-type]
    return grid

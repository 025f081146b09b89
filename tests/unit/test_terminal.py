"""What a person at the terminal sees: words, lines and the picture, in every width and without colour."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console, RenderableType

from factory import Cell as Made
from factory import write_cells
from pivotbench.campaign import Campaign
from pivotbench.cells import Cell
from pivotbench.files import write_json
from pivotbench.lease.how_far import last_news
from pivotbench.lease.key import lease_name
from pivotbench.results import Reason
from pivotbench.rounds import RACE_KEYS
from pivotbench.study import load_study
from pivotbench.terminal.mode import choose_mode
from pivotbench.terminal.outcome import Outcome, outcome
from pivotbench.terminal.progress import Left, Progress
from pivotbench.terminal.to_come import left
from pivotbench.terminal.view import View, ended
from pseudo_terminal import PseudoTerminal

ROOT = Path(__file__).resolve().parents[2]
CELL = Cell("mine", "backends", "fa3", 1)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def at_work() -> tuple[Progress, Clock]:
    clock = Clock()
    progress = Progress(clock)
    progress.left = Left(4, 4, 12)
    progress.start_stage(CELL, "launch")
    clock.now += 20
    progress.end_stage(CELL, "launch", "ok")
    progress.start_stage(CELL, "smoke")
    clock.now += 3
    return progress, clock


def drawn(what: RenderableType, columns: int = 100) -> str:
    console = Console(width=columns, force_terminal=False)
    with console.capture() as got:
        console.print(what)
    return got.get()


@pytest.mark.parametrize(
    ("environ", "terminal", "mode"),
    [
        ({"TERM": "xterm"}, True, "live"),
        ({"TERM": "xterm"}, False, "lines"),
        ({"TERM": "dumb"}, True, "lines"),
        ({"TERM": "xterm", "CI": "true"}, True, "outcomes"),
        ({"TERM": "xterm", "CI": "false"}, True, "live"),
        ({"CI": "1"}, False, "outcomes"),
    ],
)
def test_how_much_is_said_follows_from_where_it_is_read(
    environ: dict[str, str], terminal: bool, mode: str
) -> None:
    assert choose_mode(environ, terminal=terminal) == mode


def test_a_race_of_unknown_length_is_told_as_at_most() -> None:
    progress, clock = at_work()
    assert progress.cells_words() == "0 of at most 16 cells"
    assert progress.end_words() == "", "no cell has told yet how long one takes"
    clock.now += 37
    assert progress.end_cell(CELL) == 60
    assert progress.cells_words() == "1 of at most 16 cells"
    assert progress.end_words().startswith("ends ") and " to " in progress.end_words()
    progress.left = Left(3)
    assert progress.cells_words() == "1 of 4 cells"
    assert progress.end_words().startswith("ends about ")


def test_cells_to_come_are_those_of_later_rounds_and_of_the_next_phase(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = load_study(ROOT / "config" / "config.yaml")
    longer = study.decision.rounds.model_copy(update={"max": 4})
    decision = study.decision.model_copy(update={"rounds": longer})
    campaign = Campaign(study.model_copy(update={"decision": decision}), ROOT)
    monkeypatch.chdir(tmp_path)
    rounds, drafts = campaign.study.decision.rounds, len(campaign.study.speculations) + 1
    contenders = campaign.contenders("backends", None)
    many = len(contenders)
    both = left(campaign, many, ("backends", 1), alone=False)
    assert both == Left(
        many, many * (rounds.min - 1) + drafts * rounds.min, many * (rounds.max - 1) + drafts * rounds.max
    )
    resumed = left(campaign, 1, ("backends", 1), alone=True)
    assert resumed == Left(1, many * (rounds.min - 1), many * (rounds.max - 1)), "all others are done"
    race: dict[str, Any] = dict.fromkeys(RACE_KEYS) | {"next": contenders[:2], "evidence": []}
    write_json(campaign.race_file("backends", 1), race)
    assert left(campaign, 1, ("backends", 2), alone=True) == Left(1, 0, 2 * (rounds.max - 2))
    assert left(campaign, 2, ("backends", rounds.max), alone=True) == Left(2)
    assert left(campaign, 1, None, alone=False) == Left(1), "a single stage was asked for"


def test_the_picture_names_the_cell_its_stages_the_time_and_the_gpus() -> None:
    progress, _ = at_work()
    progress.hear("fa3 r1", "asking 3 prompts")
    picture = drawn(View("mine", progress, lambda: {lease_name(CELL.as_json()): "GPU 0,1"}, 8))
    assert "mine · backends, round 1 · 0 of at most 16 cells" in picture
    assert "●  fa3 r1    launch ✓  smoke 0:03  throughput  teardown" in picture
    assert picture.count("GPU 0,1") == 1
    assert "  asking 3 prompts\n" in picture
    assert picture.endswith("\n\n"), "the cursor rests on a line of its own"


@pytest.mark.parametrize("columns", [30, 60, 75, 76, 200])
def test_no_line_of_the_picture_is_wider_than_the_terminal(columns: int) -> None:
    progress, _ = at_work()
    progress.hear("fa3 r1", "launching: \x1b[31mLoading\x1b[0m shards 40 % " + "x" * 300)
    progress.start_step("charts: drawing each as HTML, SVG, PNG and Vega-Lite")
    lines = drawn(View("mine", progress, dict, 8), columns).splitlines()
    assert max(map(len, lines)) <= columns
    assert len(lines) == 6, "head, cell, its detail, step, and an empty line before and after"
    assert not any("\x1b" in line for line in lines)


def test_hundreds_of_jobs_on_a_cluster_fill_six_lines() -> None:
    progress, _ = at_work()
    for number in range(2, 300):
        progress.start_stage(Cell("mine", "backends", f"b{number}", 1), "launch", away=True)
    picture = drawn(View("mine", progress, dict, 8))
    assert "submitted" in picture and "and 293 more at work" in picture
    assert len(picture.splitlines()) < 20


def test_a_failed_and_a_skipped_stage_are_not_marked_as_done() -> None:
    progress, _ = at_work()
    progress.end_stage(CELL, "smoke", "failed")
    progress.end_stage(CELL, "throughput", "skipped")
    assert "launch ✓  smoke ✗  throughput –  teardown" in drawn(View("mine", progress, dict, 8))


def test_an_outcome_is_the_speeds_or_the_failure_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    broken = Reason("garbage", "deterministic", "the answer is \x1b]0;evil\x07 garbage", remedy="Drop it.")
    made = [
        Made("backends", "fa3", 1, tok_s={("code", 1): 71.6, ("code", 8): 400.0}),
        Made("backends", "bad", 1, failed="smoke", reason=broken),
    ]
    write_cells(Path("results"), "mine", made)
    good, bad = outcome(CELL), outcome(Cell("mine", "backends", "bad", 1))
    assert good == Outcome(False, *["code 71.6 tok/s at 1, 400 at 8"] * 2)
    assert bad.failed and bad.brief == "garbage at smoke"
    assert bad.words.endswith("garbage. Drop it.") and bad.words.isprintable()
    CELL.file("throughput").write_text("[]")
    assert outcome(CELL) == Outcome(False, "teardown ok", "teardown ok"), "a damaged file tells nothing"


def test_what_became_of_a_cell_is_never_cut() -> None:
    told = Outcome(True, "unsupported_arch at launch: " + "the kernels are not built for this GPU " * 5, "")
    lines = drawn(ended("fa3 r1", told, 61, 8), 60).splitlines()
    assert max(map(len, lines)) <= 60
    assert " ".join(lines).count("kernels") == 5 and " ".join(lines).count("GPU") == 5
    assert "1:01" in lines[0]


@pytest.mark.parametrize(
    ("line", "short"),
    [
        (
            "Loading safetensors checkpoint shards:  40% Completed | 2/5 [00:04<00:06, 2.07s/it]",
            "Loading safetensors checkpoint shards 40 %",
        ),
        (
            "Capturing num tokens (num_tokens=4096 avail_mem=27.57 GB):   2%|▏  | 1/50 [00:26<21:24]",
            "Capturing num tokens 2 %",
        ),
        ("0%|          | 0/50 [00:00<?, ?it/s]", "0 %"),
    ],
)
def test_a_progress_bar_of_a_log_is_told_in_short(line: str, short: str) -> None:
    assert last_news([line]) == short


SERVER = "/opt/sglang/launch_server.py:56: UserWarning: 'sglang serve' is the recommended entrypoint."


@pytest.mark.parametrize(
    ("log", "news"),
    [
        ([SERVER, "  Example: sglang serve [options]", "  warnings.warn("], ""),
        (
            ["[2026-11-30 02:32:57] Init torch", SERVER, "  warnings.warn("],
            "[2026-11-30 02:32:57] Init torch",
        ),
        (["INFO 11-30 02:32:57 [core.py:1] The cache takes 40% of the memory", "", "  return f("], None),
        (["0.00.123.456 I srv  load_model: loading", "load_tensors: offloading"], None),
        (
            ["Loading shards:  40% Completed | 2/5 [00:04]", "\x1b[1;33m  warnings.warn(\x1b[0m"],
            "Loading shards 40 %",
        ),
        ([], ""),
    ],
)
def test_the_source_of_a_warning_is_no_news_of_a_launch(log: list[str], news: str | None) -> None:
    assert last_news(log) == (log[0] if news is None else news)


SHOUT = """
import subprocess, sys, time
from rich.text import Text
from pivotbench.terminal.mode import write_line
from pivotbench.terminal.screen import Screen
tick = iter(range(10**9))
draw = lambda: Text("picture\\n" * (1 + next(tick) % 3))
screen = Screen(draw, lambda line: line == "in place", colour=True)
screen.start()
talk = (
    "import sys; from pivotbench.terminal.mode import write_line\\n"
    "for n in range(150): write_line(f'{sys.argv[1] * 60} {n}')"
)
talkers = [subprocess.Popen([sys.executable, "-c", talk, letter]) for letter in "ab"]
for n in range(40):
    screen.print(Text(f"told {n}"))
    write_line("in place")
    time.sleep(0.02)
for talker in talkers:
    talker.wait()
print("half a line", end="", flush=True)
screen.stop()
print("after", flush=True)
"""


def test_lines_of_many_writers_are_whole_and_none_is_lost(tmp_path: Path) -> None:
    terminal = PseudoTerminal(
        [sys.executable, "-c", textwrap.dedent(SHOUT)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "scripts")},
        columns=80,
    )
    assert terminal.end(60) == 0
    lines = terminal.everything().splitlines()
    for letter in "ab":
        assert [line for line in lines if line.startswith(letter * 9)] == [
            f"{letter * 60} {n}" for n in range(150)
        ]
    assert [line for line in lines if line.startswith("told")] == [f"told {n}" for n in range(40)]
    assert lines[-2:] == ["half a line", "after"], "and nothing of the picture is left"
    assert not any("picture" in line or "in place" in line for line in lines)


def test_neither_stages_nor_a_terminal_without_rich_need_it() -> None:
    said = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, pivotbench.stages.launch, pivotbench.terminal.mode; print('rich' in sys.modules)",
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT / "scripts")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == "False\n"
    assert json.dumps(choose_mode({"TERM": "xterm"}, terminal=False)) == '"lines"'
